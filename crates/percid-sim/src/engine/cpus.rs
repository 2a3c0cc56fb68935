//! The CPUs of the simulated machine: the running thread of each CPU, its waiting threads, and the
//! idle CPUs and cores.

use std::ops::{Index, IndexMut};

use super::index::ThreadIndex;
use super::queue::Ticket;
use super::waiting::Waiting;
use crate::cost::Idle;
use crate::cpu_set::{CpuSet, Part};
use crate::idle_history::Idleness;
use crate::policies::Id;
use crate::time::Ns;
use crate::topology::{Cpu, Reach, Topology};

/// State of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    pub(super) runs: Option<ThreadIndex>,
    /// The event that the CPU waits for. Earlier ones are void.
    pub(super) ticket: Ticket,
    /// End of its thread's operation.
    pub(super) ends: Ns,
    pub(super) next_tick: Ns,
    /// Time at which its thread began to run.
    pub(super) since: Ns,
    /// Time at which a thread last stopped running here.
    pub(super) stopped: Option<Ns>,
    /// The ID that its thread used, and the start of that use.
    pub(super) used: Option<(Id, Ns)>,
}

/// All CPUs.
#[derive(Debug)]
pub(super) struct Cpus {
    pub(super) topology: Topology,
    states: Vec<CpuState>,
    idle: CpuSet,
    /// Number of CPUs in `idle`.
    idle_count: u32,
    /// CPUs whose whole core is idle.
    idle_cores: CpuSet,
    waiting: Waiting,
    /// The CPUs of each last-level cache.
    l3s: Vec<Part>,
    /// The CPUs of each socket.
    sockets: Vec<Part>,
    /// All CPUs.
    machine: Part,
    /// The CPUs of each core.
    cores: Vec<Vec<Cpu>>,
    idleness: Idleness,
}

impl Cpus {
    /// Creates the CPUs, all idle.
    pub(super) fn new(topology: Topology) -> Cpus {
        let cpus = topology.cpus();
        let parts = |count: u32, of: &dyn Fn(Cpu) -> u32| -> Vec<Part> {
            let mut sets = vec![CpuSet::empty(cpus); count as usize];
            (0..cpus).for_each(|cpu| sets[of(cpu) as usize].insert(cpu));
            sets.iter().map(Part::from_set).collect()
        };
        let mut all = Cpus {
            states: (0..cpus).map(|_| CpuState::default()).collect(),
            idle: CpuSet::from_cpus(cpus, 0..cpus),
            idle_cores: CpuSet::from_cpus(cpus, 0..cpus),
            idle_count: cpus,
            waiting: Waiting::new(cpus),
            l3s: parts(topology.l3s(), &|cpu| topology.place(cpu).l3),
            sockets: parts(topology.sockets(), &|cpu| topology.place(cpu).socket),
            machine: Part::from_set(&CpuSet::from_cpus(cpus, 0..cpus)),
            cores: vec![Vec::new(); topology.cores() as usize],
            idleness: Idleness::new(&topology),
            topology,
        };
        (0..cpus).for_each(|cpu| all.cores[all.topology.place(cpu).core as usize].push(cpu));
        all
    }

    /// Returns the numbers of all CPUs.
    pub(super) fn all(&self) -> std::ops::Range<Cpu> {
        0..self.topology.cpus()
    }

    pub(super) fn states(&self) -> &[CpuState] {
        &self.states
    }

    fn l3(&self, cpu: Cpu) -> &Part {
        &self.l3s[self.topology.place(cpu).l3 as usize]
    }

    fn socket(&self, cpu: Cpu) -> &Part {
        &self.sockets[self.topology.place(cpu).socket as usize]
    }

    /// Returns the idle times of a busy CPU, its core and its cache since some memory was touched.
    pub(super) fn idle_times(&self, cpu: Cpu, touched: Option<Ns>) -> Idle {
        self.idleness.idle(&self.topology, cpu, touched)
    }

    /// Returns `true` if another hardware thread of a CPU's core is busy.
    pub(super) fn is_sibling_busy(&self, cpu: Cpu) -> bool {
        let core = &self.cores[self.topology.place(cpu).core as usize];
        core.iter().any(|&other| other != cpu && !self.idle.contains(other))
    }

    pub(super) fn is_idle(&self, cpu: Cpu) -> bool {
        self.idle.contains(cpu)
    }

    /// Returns the number of CPUs that run a thread.
    pub(super) fn running(&self) -> u32 {
        self.topology.cpus() - self.idle_count
    }

    pub(super) fn set_busy(&mut self, cpu: Cpu, now: Ns) {
        self.idle.remove(cpu);
        self.idle_count -= 1;
        if self.idleness.is_core_idle(&self.topology, cpu) {
            let core = &self.cores[self.topology.place(cpu).core as usize];
            core.iter().for_each(|&cpu| self.idle_cores.remove(cpu));
        }
        self.idleness.enter(&self.topology, cpu, now);
    }

    pub(super) fn set_idle(&mut self, cpu: Cpu, now: Ns) {
        self.idle.insert(cpu);
        self.idle_count += 1;
        self.idleness.leave(&self.topology, cpu, now);
        if self.idleness.is_core_idle(&self.topology, cpu) {
            let core = &self.cores[self.topology.place(cpu).core as usize];
            core.iter().for_each(|&cpu| self.idle_cores.insert(cpu));
        }
    }

    /// Returns the CPU for a thread that ran on `last`: `last` itself if it is idle, otherwise an
    /// idle CPU. CPUs behind the same cache come first, and among these the ones on a fully idle
    /// core; then the same socket, then the whole machine. If no CPU is idle, the thread waits on
    /// `last`.
    pub(super) fn near(&self, last: Cpu, allowed: &CpuSet) -> Cpu {
        if self.idle.contains(last) {
            return last;
        }
        if self.idle_count == 0 {
            return last;
        }
        let near = self.l3(last);
        near.first_in_both(&self.idle_cores, allowed)
            .or_else(|| near.first_in_both(&self.idle, allowed))
            .or_else(|| self.socket(last).first_in_both(&self.idle, allowed))
            .or_else(|| self.idle.first_in_both(allowed))
            .unwrap_or(last)
    }

    /// Returns the CPU for a thread that is new, or that may no longer run on its last CPU.
    pub(super) fn anywhere(&self, allowed: &CpuSet) -> Cpu {
        let idle_core = || self.idle_cores.first_in_both(allowed);
        let idle = (self.idle_count > 0).then(|| idle_core().or_else(|| self.first_idle(allowed)));
        idle.flatten().or_else(|| self.waiting.shortest(allowed)).unwrap_or(0)
    }

    pub(super) fn first_idle(&self, allowed: &CpuSet) -> Option<Cpu> {
        if self.idle_count == 0 {
            return None;
        }
        self.idle.first_in_both(allowed)
    }

    /// Returns the idle CPUs at exactly this distance from `last`, without `last` itself.
    pub(super) fn idle_at<'s>(
        &'s self,
        last: Cpu,
        reach: Reach,
        allowed: &'s CpuSet,
    ) -> impl Iterator<Item = Cpu> + 's {
        let near = match reach {
            Reach::Core | Reach::L3 => self.l3(last),
            Reach::Socket => self.socket(last),
            Reach::Machine => &self.machine,
        };
        near.common(&self.idle).filter(move |&cpu| {
            cpu != last && allowed.contains(cpu) && self.topology.reach(last, cpu) == reach
        })
    }

    /// Appends a thread to the queue of a CPU.
    pub(super) fn push_waiting(&mut self, cpu: Cpu, thread: ThreadIndex) {
        self.waiting.push(cpu, thread);
    }

    /// Removes a thread from the queue of its CPU.
    pub(super) fn remove_waiting(&mut self, cpu: Cpu, thread: ThreadIndex) {
        self.waiting.remove(cpu, thread);
    }

    pub(super) fn any_waiting(&self) -> bool {
        self.waiting.any()
    }

    pub(super) fn has_waiting(&self, cpu: Cpu) -> bool {
        !self.waiting.queue(cpu).is_empty()
    }

    /// Returns the first thread that waits for a CPU and may run on an idle one.
    pub(super) fn first_to_hand_on<'s>(
        &self,
        cpu: Cpu,
        affinity: impl Fn(ThreadIndex) -> &'s CpuSet,
    ) -> Option<ThreadIndex> {
        if self.idle_count == 0 {
            return None;
        }
        self.first_waiting(cpu, |thread| self.first_idle(affinity(thread)).is_some())
    }

    /// Returns the threads that wait for a CPU, in queue order.
    pub(super) fn all_waiting(&self, cpu: Cpu) -> impl Iterator<Item = ThreadIndex> + '_ {
        self.waiting.queue(cpu).iter().copied()
    }

    /// Returns the first thread that waits for a CPU and fits.
    pub(super) fn first_waiting(
        &self,
        cpu: Cpu,
        fits: impl Fn(ThreadIndex) -> bool,
    ) -> Option<ThreadIndex> {
        self.waiting.queue(cpu).iter().copied().find(|&thread| fits(thread))
    }

    /// Returns the first thread that waits for a CPU. If there is none, returns one that waits for
    /// another CPU and may run on this one, from near to far.
    pub(super) fn next_waiting(
        &self,
        cpu: Cpu,
        may_run: impl Fn(ThreadIndex) -> bool,
    ) -> Option<ThreadIndex> {
        if !self.waiting.any() {
            return None;
        }
        if let Some(&thread) = self.waiting.queue(cpu).front() {
            return Some(thread);
        }
        let near = [self.l3(cpu), self.socket(cpu), &self.machine];
        let mut crowded = near.into_iter().flat_map(|near| near.common(self.waiting.crowded()));
        crowded.find_map(|from| self.first_waiting(from, &may_run))
    }

    /// Returns the CPU from which this CPU takes a waiting thread at the tick with this number. At
    /// least two more threads wait there than here. The search covers the same cache at each tick,
    /// the same socket at each fourth, and the whole machine at each sixteenth.
    pub(super) fn to_relieve(&self, cpu: Cpu, tick: u64) -> Option<Cpu> {
        let near = match () {
            () if tick.is_multiple_of(16) => &self.machine,
            () if tick.is_multiple_of(4) => self.socket(cpu),
            () => self.l3(cpu),
        };
        self.waiting.longest(near, self.waiting.queue(cpu).len() + 2)
    }
}

impl Index<Cpu> for Cpus {
    type Output = CpuState;

    fn index(&self, cpu: Cpu) -> &CpuState {
        &self.states[cpu as usize]
    }
}

impl IndexMut<Cpu> for Cpus {
    fn index_mut(&mut self, cpu: Cpu) -> &mut CpuState {
        &mut self.states[cpu as usize]
    }
}
