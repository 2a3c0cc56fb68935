//! Places of a machine's CPUs, and distances between CPUs.

use percid_rules::space::Distance;

use crate::distances::{DIRECT, Detours, Distances};

pub use crate::place::Place;

/// Number of a CPU (hardware thread), from 0 as in the kernel.
pub type Cpu = u32;

/// The distance of one CPU's cache from another CPU. The order is from near to far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// The same core.
    Core,
    /// Another core behind the same last-level cache.
    L3,
    /// Another last-level cache in the same socket.
    Socket,
    /// Another socket.
    Machine,
}

/// The ranks of a CPU in its cache and core, counted from 0 in the order of CPU numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Rank of its core in its last-level cache.
    pub(crate) core_of_l3: u32,
    /// Rank of the CPU among the hardware threads of its core.
    pub(crate) thread_of_core: u32,
}

/// The CPUs of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    places: Vec<Place>,
    memory_only: u32,
    distances: Option<(Distances, Detours)>,
}

impl Topology {
    /// Creates a topology in which CPU `n` is at `places[n]`. Cores, caches, sockets and nodes are
    /// numbered from 0 without gaps.
    pub fn new(places: Vec<Place>) -> Topology {
        Topology { places, memory_only: 0, distances: None }
    }

    /// Sets the number of nodes that have memory and no CPUs. Their numbers follow those of the
    /// nodes with CPUs. A table of distances is removed.
    pub fn with_memory_only(self, memory_only: u32) -> Topology {
        Topology { memory_only, distances: None, ..self }
    }

    /// Returns the number of nodes that have memory and no CPUs.
    pub fn memory_only(&self) -> u32 {
        self.memory_only
    }

    /// Adds a table of the distances between the nodes. It has a row and a column for each node,
    /// including those without CPUs.
    ///
    /// # Errors
    ///
    /// Returns what was expected of the table, if it is invalid.
    pub fn with_distances(self, distances: Distances) -> Result<Topology, String> {
        if let Some((_, expected)) = distances.fault(self.nodes() + self.memory_only) {
            return Err(expected);
        }
        let detours = distances.detours(&self.places);
        Ok(Topology { distances: Some((distances, detours)), ..self })
    }

    /// Returns the table of the distances between the nodes, if there is one.
    pub fn distances(&self) -> Option<&Distances> {
        self.distances.as_ref().map(|(distances, _)| distances)
    }

    /// Returns the places of the CPUs, in the order of their numbers.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> u32 {
        self.count(|place| place.core)
    }

    /// Returns the number of last-level caches.
    pub fn l3s(&self) -> u32 {
        self.count(|place| place.l3)
    }

    /// Returns the number of sockets.
    pub fn sockets(&self) -> u32 {
        self.count(|place| place.socket)
    }

    /// Returns the number of NUMA nodes with CPUs.
    pub fn nodes(&self) -> u32 {
        self.count(|place| place.node)
    }

    /// Returns the number of cores of the last-level cache with the most cores.
    pub fn cores_per_l3(&self) -> u32 {
        let cores = self.ranks().into_iter().map(|rank| rank.core_of_l3);
        cores.max().map_or(0, |last| last + 1)
    }

    /// Returns the number of hardware threads of the core with the most threads.
    pub fn threads_per_core(&self) -> u32 {
        let threads = self.ranks().into_iter().map(|rank| rank.thread_of_core);
        threads.max().map_or(0, |last| last + 1)
    }

    /// Returns a count from the largest number, because places are numbered without gaps.
    fn count(&self, number: fn(&Place) -> u32) -> u32 {
        self.places.iter().map(number).max().map_or(0, |last| last + 1)
    }

    /// Returns the ranks of each CPU.
    pub(crate) fn ranks(&self) -> Vec<Rank> {
        let mut cores_seen = vec![0; self.l3s() as usize];
        let mut threads_seen = vec![0; self.cores() as usize];
        let mut core_ranks = vec![0; self.cores() as usize];
        let rank = |place: &Place| {
            let core = place.core as usize;
            if threads_seen[core] == 0 {
                let cores = &mut cores_seen[place.l3 as usize];
                core_ranks[core] = *cores;
                *cores += 1;
            }
            threads_seen[core] += 1;
            Rank { core_of_l3: core_ranks[core], thread_of_core: threads_seen[core] - 1 }
        };
        self.places.iter().map(rank).collect()
    }

    /// Returns the place of `cpu`.
    pub fn place(&self, cpu: Cpu) -> Place {
        self.places[cpu as usize]
    }

    /// Returns the distance of `b` from `a`.
    pub fn reach(&self, a: Cpu, b: Cpu) -> Reach {
        let (a, b) = (self.place(a), self.place(b));
        match () {
            () if a.core == b.core => Reach::Core,
            () if a.l3 == b.l3 => Reach::L3,
            () if a.socket == b.socket => Reach::Socket,
            () => Reach::Machine,
        }
    }

    /// Returns the length of the path from the cache of `b` to `a`, in thousandths of the shortest
    /// path of the same reach. Returns [`DIRECT`] if there is no table.
    pub fn detour(&self, a: Cpu, b: Cpu) -> u32 {
        let (a, b) = (self.place(a).node, self.place(b).node);
        self.distances.as_ref().map_or(DIRECT, |(_, detours)| detours.between(a, b))
    }

    /// Returns the distance of `b` from `a` in the terms of the library's ID space.
    pub fn distance(&self, a: Cpu, b: Cpu) -> Distance {
        let (a, b) = (self.place(a), self.place(b));
        match () {
            () if a.core == b.core => Distance::SameCore,
            () if a.l3 == b.l3 => Distance::SameL3,
            () if a.node == b.node => Distance::SameNode,
            () => Distance::Far,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two caches: one with a core of two threads and a core of one thread, one with a single core.
    #[test]
    fn machines_need_not_be_regular() {
        let at = |core, l3| Place { core, l3, socket: 0, node: 0 };
        let topology = Topology::new(vec![at(0, 0), at(1, 0), at(2, 1), at(0, 0)]);
        let counts = (topology.cpus(), topology.cores(), topology.l3s(), topology.sockets());
        assert_eq!(counts, (4, 3, 2, 1));
        assert_eq!((topology.cores_per_l3(), topology.threads_per_core()), (2, 2));
        let ranks = topology.ranks();
        let ranks = ranks.iter().map(|rank| (rank.core_of_l3, rank.thread_of_core));
        assert_eq!(ranks.collect::<Vec<_>>(), [(0, 0), (1, 0), (0, 0), (0, 1)]);
    }
}
