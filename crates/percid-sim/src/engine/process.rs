//! A simulated process: its policy, its memory, and the shared state of its thread groups.

use super::index::ThreadIndex;
use super::quota::BandwidthIndex;
use crate::caches::Seen;
use crate::contract::Breach;
use crate::contract::holders::{Holders, TakenIds, id_bound};
use crate::cpu_set::CpuSet;
use crate::policies::{self, Id, Overhead, Policy, Thread};
use crate::random::Random;
use crate::time::Ns;
use crate::topology::{Cpu, Topology};
use crate::workload::GroupIndex;

/// The CPU that touched an area last, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    pub(super) cpu: Cpu,
    pub(super) at: Ns,
    /// State of the CPU's caches at that time.
    pub(super) seen: Seen,
}

/// The turns of a group: their order, and the thread whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    order: Vec<ThreadIndex>,
    at: usize,
}

impl Turns {
    /// Returns `true` if no thread has requested a turn yet.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Starts a round of these threads in a random order.
    pub(super) fn begin(&mut self, members: Vec<ThreadIndex>, random: &mut Random) {
        self.order = members;
        self.at = 0;
        random.shuffle(&mut self.order);
    }

    /// Adds a thread to the end of the round.
    pub(super) fn join(&mut self, thread: ThreadIndex) {
        self.order.push(thread);
    }

    /// Returns the thread whose turn it is.
    pub(super) fn current(&self) -> Option<ThreadIndex> {
        self.order.get(self.at).copied()
    }

    /// Passes the turn to the next thread.
    pub(super) fn pass(&mut self) {
        self.at = (self.at + 1) % self.order.len().max(1);
    }

    /// Removes an ended thread from the round. If it was its turn, it is now the next thread's
    /// turn.
    pub(super) fn leave(&mut self, thread: ThreadIndex) {
        let Some(place) = self.order.iter().position(|&other| other == thread) else { return };
        self.order.remove(place);
        if place < self.at {
            self.at -= 1;
        }
        if self.at >= self.order.len() {
            self.at = 0;
        }
    }
}

/// Shared state of one group of threads.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Number of threads that began and have not ended.
    pub(super) living: u32,
    pub(super) at_barrier: Vec<ThreadIndex>,
    /// The threads in an order that is shuffled once; empty until one of them requests its place.
    pub(super) order: Vec<ThreadIndex>,
    pub(super) turns: Turns,
}

/// A process.
pub(super) struct ProcessState {
    /// Index of the program that it runs.
    pub(super) part: usize,
    pub(super) policy: Box<dyn Policy>,
    /// The IDs that its running threads have.
    taken: TakenIds,
    /// The exclusive upper bound of its IDs.
    id_bound: u32,
    /// The thread of this process that runs on each CPU.
    running: Vec<Option<Thread>>,
    /// Number of allowed CPUs, for each thread that it ever had.
    thread_allowed: Vec<u32>,
    /// The CPUs that have been allowed to any of its threads so far (R2).
    allowed: CpuSet,
    nr_cpus_allowed: u32,
    pub(super) users: u32,
    /// Index of its CPU quota, if it has one.
    pub(super) bandwidth: Option<BandwidthIndex>,
    /// Number of groups that have not begun.
    pub(super) unborn: u32,
    /// The last touch of each ID's area.
    pub(super) areas: Vec<Option<Touch>>,
    /// The touch of all areas before any of them was used.
    pub(super) prepared: Option<Touch>,
    /// Shared states of the groups, by group.
    together: Vec<Together>,
}

impl ProcessState {
    pub(super) fn new(
        part: usize,
        policy: Box<dyn Policy>,
        topology: &Topology,
        groups: usize,
    ) -> ProcessState {
        ProcessState {
            part,
            policy,
            taken: TakenIds::default(),
            id_bound: topology.cpus(),
            running: vec![None; topology.cpus() as usize],
            thread_allowed: Vec::new(),
            allowed: CpuSet::empty(topology.cpus()),
            nr_cpus_allowed: 0,
            users: 0,
            bandwidth: None,
            unborn: 0,
            areas: Vec::new(),
            prepared: None,
            together: (0..groups).map(|_| Together::default()).collect(),
        }
    }

    /// Returns the policy and its view of the process.
    pub(super) fn parts<'a>(
        &'a mut self,
        now: Ns,
        topology: &'a Topology,
    ) -> (&'a mut dyn Policy, policies::Process<'a>) {
        let view = policies::Process {
            now,
            topology,
            users: self.users,
            nr_cpus_allowed: self.nr_cpus_allowed,
            thread_allowed: &self.thread_allowed,
            running: &self.running,
        };
        (&mut *self.policy, view)
    }

    /// Returns `true` if all its threads have ended and all its groups have begun.
    pub(super) fn is_over(&self) -> bool {
        self.users == 0 && self.unborn == 0
    }

    pub(super) fn together(&mut self, group: GroupIndex) -> &mut Together {
        &mut self.together[group.0 as usize]
    }

    pub(super) fn runs_on(&self, cpu: Cpu) -> bool {
        self.running[cpu as usize].is_some()
    }

    /// Replaces the running thread of a CPU, which no longer has its ID.
    pub(super) fn set_running(&mut self, holders: &mut Holders, cpu: Cpu, thread: Option<Thread>) {
        self.release(holders, cpu);
        self.running[cpu as usize] = thread;
    }

    /// Adds a new thread with this affinity and returns its number.
    pub(super) fn join(&mut self, affinity: &CpuSet) -> Thread {
        self.users += 1;
        self.id_bound = id_bound(self.id_bound, self.users);
        self.thread_allowed.push(affinity.len());
        self.allow(affinity);
        self.thread_allowed.len() as Thread - 1
    }

    /// Returns the number of IDs that it needs: `min(allowed CPUs, threads)`.
    pub(super) fn bound(&self) -> u32 {
        self.nr_cpus_allowed.min(self.users)
    }

    /// Restricts a thread to these CPUs.
    pub(super) fn confine(&mut self, thread: Thread, affinity: &CpuSet) {
        self.thread_allowed[thread as usize] = affinity.len();
        self.allow(affinity);
    }

    /// Adds to the CPUs that have been allowed to any thread.
    fn allow(&mut self, affinity: &CpuSet) {
        self.allowed.add_all(affinity);
        self.nr_cpus_allowed = self.allowed.len();
    }

    pub(super) fn id_bound(&self) -> u32 {
        self.id_bound
    }

    /// Records that the thread on a CPU uses an ID.
    #[inline]
    pub(super) fn use_id(&mut self, holders: &mut Holders, cpu: Cpu, id: Id) -> Result<(), Breach> {
        holders.use_id(&mut self.taken, &self.running, cpu, id)
    }

    /// Records that the thread on a CPU no longer has its ID.
    pub(super) fn release(&mut self, holders: &mut Holders, cpu: Cpu) {
        holders.release(&mut self.taken, cpu);
    }

    /// Records fences that the policy reported for the thread on a CPU.
    pub(super) fn fence(&mut self, holders: &mut Holders, by: Cpu, overhead: &Overhead) {
        holders.fence(&mut self.taken, &self.running, by, overhead);
    }

    /// Begins a new address space for its only thread.
    pub(super) fn exec(&mut self, affinity: &CpuSet) {
        self.areas.clear();
        self.allowed = affinity.clone();
        self.nr_cpus_allowed = affinity.len();
    }

    /// Returns the last touch of an ID's area.
    pub(super) fn last_touch(&self, id: Id) -> Option<Touch> {
        self.areas.get(id as usize).copied().flatten().or(self.prepared)
    }

    /// Records a touch of an ID's area.
    pub(super) fn touch(&mut self, id: Id, touch: Touch) {
        let id = id as usize;
        if self.areas.len() <= id {
            self.areas.resize(id + 1, None);
        }
        self.areas[id] = Some(touch);
    }
}
