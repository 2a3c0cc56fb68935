//! One cache line under an invalidation protocol: either one modified copy, or any number of clean
//! ones.

use std::collections::VecDeque;

use serde::Serialize;

use super::parameters::{Arbitration, Parameters};
use super::policy::Cycles;
use crate::topology::{Cpu, Reach, Topology};

/// A CPU's access to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// A read.
    Load,
    /// A read and write by a locked instruction, for which the core must own the line.
    Modify,
}

/// The place where an access found the line, from near to far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// In the own core, in a state that allows the access.
    Core,
    /// Clean in the own last-level cache. For a modification, other cores behind it had copies.
    Cache,
    /// Modified by another core behind the same last-level cache.
    ModifiedInCache,
    /// Clean in another cache of the socket. For a modification, other caches of it had copies.
    Socket,
    /// Modified behind another cache of the socket.
    ModifiedInSocket,
    /// Clean outside the socket. For a modification, other sockets had copies.
    Machine,
    /// Modified in another socket.
    ModifiedInMachine,
}

impl Source {
    /// Returns `true` if the caches up to the last level did not have the line in a state that
    /// allows the access.
    pub(super) fn is_miss(self) -> bool {
        !matches!(self, Source::Core | Source::Cache | Source::ModifiedInCache)
    }

    /// Returns `true` if another core had modified the line.
    pub(super) fn is_modified(self) -> bool {
        matches!(
            self,
            Source::ModifiedInCache | Source::ModifiedInSocket | Source::ModifiedInMachine
        )
    }
}

/// An access that has been granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) cpu: Cpu,
    pub(super) source: Source,
    /// Time at which the access is complete.
    pub(super) done: Cycles,
    /// Time for which no other CPU can have the line; 0 for reading a clean copy.
    pub(super) occupied: Cycles,
}

/// The line, its copies and its queue.
#[derive(Debug)]
pub(super) struct Line {
    topology: Topology,
    latencies: Latencies,
    arbitration: Arbitration,
    /// The CPU whose core has the only copy, modified.
    owner: Option<Cpu>,
    /// For each core, `true` if it has a copy.
    cores: Vec<bool>,
    /// For each last-level cache, the time since it has a copy, or the arrival time of a copy in
    /// transit.
    caches: Vec<Option<Cycles>>,
    /// The socket of each last-level cache.
    socket_of: Vec<u32>,
    /// The CPU that modified the line last.
    last: Cpu,
    /// For each core, `true` if it had a copy before the last modification. It could read this copy
    /// until the invalidation arrived.
    former: Vec<bool>,
    invalidated: Cycles,
    busy_until: Cycles,
    queue: VecDeque<(Cpu, Access)>,
}

#[derive(Debug)]
struct Latencies {
    core: Cycles,
    cache: Cycles,
    socket: Cycles,
    machine: Cycles,
    locked: Cycles,
}

impl Latencies {
    fn get(&self, source: Source) -> Cycles {
        match source {
            Source::Core => self.core,
            Source::Cache | Source::ModifiedInCache => self.cache,
            Source::Socket | Source::ModifiedInSocket => self.socket,
            Source::Machine | Source::ModifiedInMachine => self.machine,
        }
    }
}

impl Line {
    /// Creates a line that no cache has.
    pub(super) fn new(parameters: &Parameters) -> Line {
        let topology = &parameters.topology;
        let cores = topology.cores() as usize;
        let mut socket_of = vec![0; topology.l3s() as usize];
        for place in (0..topology.cpus()).map(|cpu| topology.place(cpu)) {
            socket_of[place.l3 as usize] = place.socket;
        }
        Line {
            topology: topology.clone(),
            latencies: Latencies {
                core: parameters.core_cycles.round() as Cycles,
                cache: parameters.cycles(parameters.same_l3_ns),
                socket: parameters.cycles(parameters.same_socket_ns),
                machine: parameters.cycles(parameters.other_socket_ns),
                locked: parameters.cycles(parameters.locked_ns),
            },
            arbitration: parameters.arbitration,
            owner: None,
            cores: vec![false; cores],
            caches: vec![None; socket_of.len()],
            socket_of,
            last: 0,
            former: vec![false; cores],
            invalidated: 0,
            busy_until: 0,
            queue: VecDeque::new(),
        }
    }

    /// Reads the core's former copy if the invalidation has not reached it yet, otherwise appends
    /// the access to the queue.
    pub(super) fn request(&mut self, now: Cycles, cpu: Cpu, access: Access) -> Option<Grant> {
        let core = self.topology.place(cpu).core as usize;
        if access == Access::Load && now < self.invalidated && self.former[core] {
            let done = now + self.latencies.core;
            return Some(Grant { cpu, source: Source::Core, done, occupied: 0 });
        }
        self.queue.push_back((cpu, access));
        None
    }

    /// Grants the next access, if there is one and the line is not in transit. The caller repeats
    /// it until it returns `None`, after each request and when a grant is done.
    pub(super) fn grant(&mut self, now: Cycles) -> Option<Grant> {
        if self.busy_until > now && self.arbitration != Arbitration::Unqueued {
            return None;
        }
        let (cpu, access) = self.next()?;
        let source = self.source(cpu, access);
        let grant = match access {
            Access::Load => self.load(now, cpu, source),
            Access::Modify => self.modify(now, cpu, source),
        };
        self.busy_until = self.busy_until.max(now + grant.occupied);
        Some(grant)
    }

    fn next(&mut self) -> Option<(Cpu, Access)> {
        if self.arbitration != Arbitration::NearestFirst {
            return self.queue.pop_front();
        }
        let distance =
            |&(_, (cpu, _)): &(usize, &(Cpu, Access))| self.topology.reach(self.last, *cpu);
        let (nearest, _) = self.queue.iter().enumerate().min_by_key(distance)?;
        self.queue.remove(nearest)
    }

    fn source(&self, cpu: Cpu, access: Access) -> Source {
        match (self.owner, access) {
            (Some(owner), _) => match self.topology.reach(owner, cpu) {
                Reach::Core => Source::Core,
                Reach::L3 => Source::ModifiedInCache,
                Reach::Socket => Source::ModifiedInSocket,
                Reach::Machine => Source::ModifiedInMachine,
            },
            (None, Access::Load) => self.nearest_copy(cpu),
            (None, Access::Modify) => self.farthest_copy(cpu),
        }
    }

    /// Returns the source of a clean copy.
    fn nearest_copy(&self, cpu: Cpu) -> Source {
        let place = self.topology.place(cpu);
        match () {
            () if self.cores[place.core as usize] => Source::Core,
            () if self.caches[place.l3 as usize].is_some() => Source::Cache,
            () if self.copies().any(|(_, socket)| socket == place.socket) => Source::Socket,
            () => Source::Machine,
        }
    }

    /// Returns the farthest place that the invalidation of clean copies reaches. Without a copy in
    /// the own cache, the line comes from outside.
    fn farthest_copy(&self, cpu: Cpu) -> Source {
        let place = self.topology.place(cpu);
        let in_cache = self.caches[place.l3 as usize].is_some();
        let in_core = self.cores[place.core as usize];
        let mut copies = 0;
        let (mut in_socket, mut elsewhere) = (false, false);
        for (cache, socket) in self.copies() {
            copies += 1;
            in_socket |= cache != place.l3 && socket == place.socket;
            elsewhere |= socket != place.socket;
        }
        let cores = self.cores.iter().filter(|copy| **copy).count();
        match () {
            () if elsewhere || copies == 0 => Source::Machine,
            () if in_socket || !in_cache => Source::Socket,
            () if cores > 1 || !in_core => Source::Cache,
            () => Source::Core,
        }
    }

    /// Returns the last-level caches that have a copy, each with its socket.
    fn copies(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = (0..).zip(self.caches.iter().zip(&self.socket_of));
        all.filter_map(|(cache, (copy, socket))| copy.map(|_| (cache, *socket)))
    }

    fn load(&mut self, now: Cycles, cpu: Cpu, source: Source) -> Grant {
        let place = self.topology.place(cpu);
        let arrives = now + self.latencies.get(source);
        if source == Source::Core {
            return Grant { cpu, source, done: arrives, occupied: 0 };
        }
        if source.is_modified() {
            // The modified copy is written back in transit, and stays as a clean one.
            self.owner = None;
        }
        self.cores[place.core as usize] = true;
        let copy = self.caches[place.l3 as usize].get_or_insert(arrives);
        let occupied = if source.is_modified() { arrives - now } else { 0 };
        Grant { cpu, source, done: arrives.max(*copy), occupied }
    }

    fn modify(&mut self, now: Cycles, cpu: Cpu, source: Source) -> Grant {
        let place = self.topology.place(cpu);
        let moved = if source == Source::Core { 0 } else { self.latencies.get(source) };
        let occupied = moved + self.latencies.locked;
        let done = now + occupied;
        // The invalidation takes one half of the time, and its acknowledgement the other half.
        self.invalidated = now + moved / 2;
        std::mem::swap(&mut self.cores, &mut self.former);
        self.cores.fill(false);
        self.caches.fill(None);
        self.cores[place.core as usize] = true;
        self.caches[place.l3 as usize] = Some(done);
        self.owner = Some(cpu);
        self.last = cpu;
        Grant { cpu, source, done, occupied }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKED: Cycles = 13;
    const REMOTE: Cycles = 554;
    const L3: Cycles = 43;
    const L1: Cycles = 4;

    /// Performs one access alone. `now` must be late enough for the previous access to be done.
    fn alone(line: &mut Line, now: Cycles, cpu: Cpu, access: Access) -> (Source, Cycles) {
        line.request(now, cpu, access);
        let grant = line.grant(now).expect("a free line");
        assert_eq!(line.grant(now), None, "nothing else was asked for");
        (grant.source, grant.done - now)
    }

    #[test]
    fn a_modified_line_comes_from_its_owner() {
        let mut line = Line::new(&Parameters::default());
        let mut modify = |now, cpu| alone(&mut line, now, cpu, Access::Modify);
        assert_eq!(modify(10_000, 0), (Source::Machine, REMOTE + LOCKED));
        assert_eq!(modify(20_000, 0), (Source::Core, LOCKED));
        assert_eq!(modify(30_000, 60), (Source::Core, LOCKED), "the sibling");
        assert_eq!(modify(40_000, 14), (Source::ModifiedInCache, L3 + LOCKED));
        assert_eq!(modify(50_000, 15), (Source::ModifiedInMachine, REMOTE + LOCKED));
    }

    #[test]
    fn a_read_line_is_shared_until_somebody_modifies_it() {
        let mut line = Line::new(&Parameters::default());
        alone(&mut line, 0, 0, Access::Modify);
        let mut load = |now, cpu| alone(&mut line, now, cpu, Access::Load);
        assert_eq!(load(1_000, 15), (Source::ModifiedInMachine, REMOTE));
        assert_eq!(load(2_000, 16), (Source::Cache, L3));
        assert_eq!(load(3_000, 16), (Source::Core, L1));
        assert_eq!(load(3_000, 76), (Source::Core, L1), "the sibling");
        assert_eq!(load(4_000, 0), (Source::Core, L1), "the former owner");
        assert_eq!(load(5_000, 30), (Source::Machine, REMOTE));
        let invalidated_everywhere = alone(&mut line, 6_000, 15, Access::Modify);
        assert_eq!(invalidated_everywhere, (Source::Machine, REMOTE + LOCKED));
        let mut load = |now, cpu| alone(&mut line, now, cpu, Access::Load);
        assert_eq!(load(7_000, 17), (Source::ModifiedInCache, L3));
        assert_eq!(load(8_000, 16), (Source::Cache, L3), "the core's copy is gone");
        assert_eq!(load(9_000, 0), (Source::Machine, REMOTE), "the socket's copy is gone");
        alone(&mut line, 10_000, 30, Access::Modify);
        let mut load = |now, cpu| alone(&mut line, now, cpu, Access::Load);
        assert_eq!(load(11_000, 18), (Source::ModifiedInMachine, REMOTE));
        assert_eq!(load(12_000, 15), (Source::Cache, L3), "no copy of two modifications ago");
    }

    #[test]
    fn copies_within_a_socket_are_invalidated_there() {
        let mut line = Line::new(&Parameters::default());
        alone(&mut line, 0, 0, Access::Load);
        assert_eq!(
            alone(&mut line, 1_000, 0, Access::Modify),
            (Source::Core, LOCKED),
            "the only copy"
        );
        alone(&mut line, 2_000, 1, Access::Load);
        assert_eq!(alone(&mut line, 3_000, 0, Access::Modify), (Source::Cache, L3 + LOCKED));
    }

    #[test]
    fn a_copy_is_read_until_the_invalidation_reaches_it() {
        let mut line = Line::new(&Parameters::default());
        alone(&mut line, 0, 15, Access::Load);
        line.request(1_000, 0, Access::Modify);
        assert!(line.grant(1_000).is_some());
        let arrives = 1_000 + REMOTE / 2;
        assert!(line.request(arrives - 1, 15, Access::Load).is_some());
        assert_eq!(line.request(arrives - 1, 30, Access::Load), None, "it never had a copy");
        assert_eq!(line.request(arrives, 15, Access::Load), None);
    }

    #[test]
    fn a_copy_on_its_way_is_waited_for() {
        let mut line = Line::new(&Parameters::default());
        line.request(0, 0, Access::Load);
        line.request(0, 1, Access::Load);
        assert_eq!(line.grant(0).map(|grant| grant.done), Some(REMOTE));
        assert_eq!(line.grant(0).map(|grant| grant.done), Some(REMOTE));
    }

    /// Returns the CPUs in the order in which their simultaneous modifications were granted.
    fn served(arbitration: Arbitration, requested: &[Cpu]) -> Vec<Cpu> {
        let mut line = Line::new(&Parameters { arbitration, ..Parameters::default() });
        for cpu in requested {
            line.request(0, *cpu, Access::Modify);
        }
        let mut now = 0;
        let mut order = Vec::new();
        while let Some(grant) = line.grant(now) {
            assert_eq!(line.grant(grant.done - 1), None, "one owner at a time");
            order.push(grant.cpu);
            now = grant.done;
        }
        order
    }

    #[test]
    fn modifications_queue_in_the_order_of_the_arbitration() {
        assert_eq!(served(Arbitration::InOrder, &[0, 15, 1, 61]), [0, 15, 1, 61]);
        assert_eq!(served(Arbitration::NearestFirst, &[0, 15, 1, 61]), [0, 1, 61, 15]);
    }

    #[test]
    fn without_a_queue_nobody_waits() {
        let arbitration = Arbitration::Unqueued;
        let mut line = Line::new(&Parameters { arbitration, ..Parameters::default() });
        line.request(0, 0, Access::Modify);
        line.request(0, 15, Access::Modify);
        assert_eq!(line.grant(0).map(|grant| grant.done), Some(REMOTE + LOCKED));
        assert_eq!(line.grant(0).map(|grant| grant.done), Some(REMOTE + LOCKED));
    }
}
