//! Where the CPUs of a machine sit, and how far one is from another.

use percid_rules::space::Distance;

use crate::distances::{DIRECT, Detours, Distances};

/// A CPU (hardware thread), numbered from 0 as the kernel numbers them.
pub type Cpu = u32;

/// Where a CPU sits. Numbers count over the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The core, which hardware threads share.
    pub core: u32,
    /// The last-level cache.
    pub l3: u32,
    /// The socket.
    pub socket: u32,
    /// The NUMA node.
    pub node: u32,
}

/// How far the cache of one CPU is from another CPU. The order is from near to far.
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

/// Which one a CPU is among those that share with it, counted from 0 in the order of the CPUs'
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Its core among those of its last-level cache.
    pub(crate) core_of_l3: u32,
    /// Itself among the hardware threads of its core.
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
    /// The CPU with number `n` sits at `places[n]`. Cores, caches, sockets and nodes are numbered
    /// from 0 without gaps.
    pub fn new(places: Vec<Place>) -> Topology {
        Topology { places, memory_only: 0, distances: None }
    }

    /// The same with so many more nodes, which have memory and no CPUs. Their numbers follow those of
    /// the nodes with CPUs. A table of distances is lost.
    pub fn with_memory_only(self, memory_only: u32) -> Topology {
        Topology { memory_only, distances: None, ..self }
    }

    /// How many nodes have memory and no CPUs.
    pub fn memory_only(&self) -> u32 {
        self.memory_only
    }

    /// The same with a table of the distances between its nodes, which has a row and a column for
    /// each, also for those without CPUs.
    ///
    /// # Errors
    ///
    /// What was expected of the table.
    pub fn with_distances(self, distances: Distances) -> Result<Topology, String> {
        if let Some((_, expected)) = distances.fault(self.nodes() + self.memory_only) {
            return Err(expected);
        }
        let detours = distances.detours(&self.places);
        Ok(Topology { distances: Some((distances, detours)), ..self })
    }

    /// The table of the distances between the nodes, if there is one.
    pub fn distances(&self) -> Option<&Distances> {
        self.distances.as_ref().map(|(distances, _)| distances)
    }

    /// Where each CPU sits, in the order of their numbers.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.places.len() as u32
    }

    /// How many cores there are.
    pub fn cores(&self) -> u32 {
        self.count(|place| place.core)
    }

    /// How many last-level caches there are.
    pub fn l3s(&self) -> u32 {
        self.count(|place| place.l3)
    }

    /// How many sockets there are.
    pub fn sockets(&self) -> u32 {
        self.count(|place| place.socket)
    }

    /// How many NUMA nodes with CPUs there are.
    pub fn nodes(&self) -> u32 {
        self.count(|place| place.node)
    }

    /// Cores of the last-level cache that has most of them.
    pub fn cores_per_l3(&self) -> u32 {
        let cores = self.ranks().into_iter().map(|rank| rank.core_of_l3);
        cores.max().map_or(0, |last| last + 1)
    }

    /// Hardware threads of the core that has most of them.
    pub fn threads_per_core(&self) -> u32 {
        let threads = self.ranks().into_iter().map(|rank| rank.thread_of_core);
        threads.max().map_or(0, |last| last + 1)
    }

    /// Places are numbered without gaps, so the largest number tells how many there are.
    fn count(&self, number: fn(&Place) -> u32) -> u32 {
        self.places.iter().map(number).max().map_or(0, |last| last + 1)
    }

    /// Which of its cache's cores and which of its core's threads each CPU is.
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

    /// Where `cpu` sits.
    pub fn place(&self, cpu: Cpu) -> Place {
        self.places[cpu as usize]
    }

    /// How far `b` is from `a`.
    pub fn reach(&self, a: Cpu, b: Cpu) -> Reach {
        let (a, b) = (self.place(a), self.place(b));
        match () {
            () if a.core == b.core => Reach::Core,
            () if a.l3 == b.l3 => Reach::L3,
            () if a.socket == b.socket => Reach::Socket,
            () => Reach::Machine,
        }
    }

    /// How much longer the way from the cache of `b` to `a` is than the shortest way of the same
    /// reach, in thousandths of that: [`DIRECT`] if it is not, or no table says so.
    pub fn detour(&self, a: Cpu, b: Cpu) -> u32 {
        let (a, b) = (self.place(a).node, self.place(b).node);
        self.distances.as_ref().map_or(DIRECT, |(_, detours)| detours.between(a, b))
    }

    /// How far `b` is from `a` in the terms of the library's ID space.
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

    /// Two caches: one with a core of two threads and a core of one, one with a single core.
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
