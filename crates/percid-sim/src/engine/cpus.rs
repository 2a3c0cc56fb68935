//! The CPUs of the simulated machine: what each one runs, which threads wait for it, and which
//! CPUs and cores are idle.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use super::index::ThreadIndex;
use super::queue::Ticket;
use crate::cpu_set::CpuSet;
use crate::idle_history::IdleHistory;
use crate::policies::Id;
use crate::time::Ns;
use crate::topology::{Cpu, Reach, Topology};

/// One CPU.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    pub(super) runs: Option<ThreadIndex>,
    waiting: VecDeque<ThreadIndex>,
    /// The event that it waits for. Earlier ones are void.
    pub(super) ticket: Ticket,
    /// When its thread's operation ends.
    pub(super) ends: Ns,
    pub(super) next_tick: Ns,
    /// Since when its thread runs.
    pub(super) since: Ns,
    /// When a thread stopped running here last.
    pub(super) stopped: Option<Ns>,
    /// The ID that its thread used, and since when.
    pub(super) used: Option<(Id, Ns)>,
}

impl CpuState {
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[derive(Debug, Default)]
struct Core {
    history: IdleHistory,
    cpus: Vec<Cpu>,
}

/// All CPUs.
#[derive(Debug)]
pub(super) struct Cpus {
    pub(super) topology: Topology,
    states: Vec<CpuState>,
    idle: CpuSet,
    /// CPUs whose whole core is idle.
    idle_cores: CpuSet,
    /// CPUs with waiting threads.
    crowded: CpuSet,
    /// Threads that wait, on all CPUs together.
    waiting: u32,
    /// The CPUs of each last-level cache.
    l3s: Vec<CpuSet>,
    /// The CPUs of each socket.
    sockets: Vec<CpuSet>,
    cores: Vec<Core>,
}

impl Cpus {
    /// CPUs that are all idle.
    pub(super) fn new(topology: Topology) -> Cpus {
        let cpus = topology.cpus();
        let sets = |count: u32, of: &dyn Fn(Cpu) -> u32| -> Vec<CpuSet> {
            let members = |n| (0..cpus).filter(move |&cpu| of(cpu) == n);
            (0..count).map(|n| CpuSet::of(cpus, members(n))).collect()
        };
        let mut all = Cpus {
            states: (0..cpus).map(|_| CpuState::default()).collect(),
            idle: CpuSet::of(cpus, 0..cpus),
            idle_cores: CpuSet::of(cpus, 0..cpus),
            crowded: CpuSet::empty(cpus),
            waiting: 0,
            l3s: sets(topology.l3s(), &|cpu| topology.place(cpu).l3),
            sockets: sets(topology.sockets(), &|cpu| topology.place(cpu).socket),
            cores: (0..topology.cores()).map(|_| Core::default()).collect(),
            topology,
        };
        (0..cpus).for_each(|cpu| all.core_mut(cpu).cpus.push(cpu));
        all
    }

    /// The numbers of all CPUs.
    pub(super) fn all(&self) -> std::ops::Range<Cpu> {
        0..self.topology.cpus()
    }

    pub(super) fn states(&self) -> &[CpuState] {
        &self.states
    }

    fn l3(&self, cpu: Cpu) -> &CpuSet {
        &self.l3s[self.topology.place(cpu).l3 as usize]
    }

    fn socket(&self, cpu: Cpu) -> &CpuSet {
        &self.sockets[self.topology.place(cpu).socket as usize]
    }

    fn core_mut(&mut self, cpu: Cpu) -> &mut Core {
        &mut self.cores[self.topology.place(cpu).core as usize]
    }

    /// How the core of a CPU idled.
    pub(super) fn idle_history(&self, cpu: Cpu) -> &IdleHistory {
        &self.cores[self.topology.place(cpu).core as usize].history
    }

    pub(super) fn is_idle(&self, cpu: Cpu) -> bool {
        self.idle.contains(cpu)
    }

    /// How many CPUs run a thread.
    pub(super) fn running(&self) -> u32 {
        self.topology.cpus() - self.idle.len()
    }

    pub(super) fn set_busy(&mut self, cpu: Cpu, now: Ns) {
        self.idle.remove(cpu);
        let core = &mut self.cores[self.topology.place(cpu).core as usize];
        if core.history.is_idle() {
            core.cpus.iter().for_each(|&cpu| self.idle_cores.remove(cpu));
        }
        core.history.enter(now);
    }

    pub(super) fn set_idle(&mut self, cpu: Cpu, now: Ns) {
        self.idle.insert(cpu);
        let core = &mut self.cores[self.topology.place(cpu).core as usize];
        core.history.leave(now);
        if core.history.is_idle() {
            core.cpus.iter().for_each(|&cpu| self.idle_cores.insert(cpu));
        }
    }

    /// The CPU for a thread that ran on `last`: that one if it is idle, else an idle one behind the
    /// same cache, on a core that is idle as a whole if there is one, then in the same socket, then
    /// anywhere. If none is idle, the thread waits where it ran last.
    pub(super) fn near(&self, last: Cpu, allowed: &CpuSet) -> Cpu {
        if self.idle.contains(last) {
            return last;
        }
        let near = self.l3(last);
        self.idle_cores
            .first_in_all(near, allowed)
            .or_else(|| self.idle.first_in_all(near, allowed))
            .or_else(|| self.idle.first_in_all(self.socket(last), allowed))
            .or_else(|| self.idle.first_in_both(allowed))
            .unwrap_or(last)
    }

    /// The CPU for a thread that is new, or may not run any more where it ran last.
    pub(super) fn anywhere(&self, allowed: &CpuSet) -> Cpu {
        let idle =
            self.idle_cores.first_in_both(allowed).or_else(|| self.idle.first_in_both(allowed));
        idle.unwrap_or_else(|| self.least_crowded(allowed))
    }

    pub(super) fn first_idle(&self, allowed: &CpuSet) -> Option<Cpu> {
        self.idle.first_in_both(allowed)
    }

    /// The idle CPUs at exactly this distance from `last`, without `last` itself.
    pub(super) fn idle_at<'s>(
        &'s self,
        last: Cpu,
        reach: Reach,
        allowed: &'s CpuSet,
    ) -> impl Iterator<Item = Cpu> + 's {
        let near = match reach {
            Reach::Core | Reach::L3 => self.l3(last),
            Reach::Socket => self.socket(last),
            Reach::Machine => allowed,
        };
        self.idle.common(near).filter(move |&cpu| {
            cpu != last && allowed.contains(cpu) && self.topology.reach(last, cpu) == reach
        })
    }

    fn least_crowded(&self, allowed: &CpuSet) -> Cpu {
        allowed.iter().min_by_key(|&cpu| self[cpu].waiting.len()).unwrap_or(0)
    }

    /// Lets a thread wait for a CPU, behind those that wait already.
    pub(super) fn push_waiting(&mut self, cpu: Cpu, thread: ThreadIndex) {
        self[cpu].waiting.push_back(thread);
        self.crowded.insert(cpu);
        self.waiting += 1;
    }

    /// Takes a thread out of the queue of its CPU.
    pub(super) fn remove_waiting(&mut self, cpu: Cpu, thread: ThreadIndex) {
        let waiting = &mut self[cpu].waiting;
        let Some(place) = waiting.iter().position(|&other| other == thread) else { return };
        waiting.remove(place);
        if waiting.is_empty() {
            self.crowded.remove(cpu);
        }
        self.waiting -= 1;
    }

    pub(super) fn any_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The first thread that waits for a CPU and fits.
    pub(super) fn first_waiting(
        &self,
        cpu: Cpu,
        fits: impl Fn(ThreadIndex) -> bool,
    ) -> Option<ThreadIndex> {
        self[cpu].waiting.iter().copied().find(|&thread| fits(thread))
    }

    /// The first thread that waits for a CPU. If none does, one that waits for another CPU and may
    /// run here, from near to far.
    pub(super) fn next_waiting(
        &self,
        cpu: Cpu,
        may_run: impl Fn(ThreadIndex) -> bool,
    ) -> Option<ThreadIndex> {
        if self.waiting == 0 {
            return None;
        }
        if let Some(&thread) = self[cpu].waiting.front() {
            return Some(thread);
        }
        let near = [self.l3(cpu), self.socket(cpu), &self.crowded];
        let mut crowded = near.into_iter().flat_map(|near| self.crowded.common(near));
        crowded.find_map(|from| self.first_waiting(from, &may_run))
    }

    /// The CPU from which a CPU takes a waiting thread at its tick with this number: one where at
    /// least two more wait than here, behind the same cache at each tick, in the same socket at
    /// each fourth, on the whole machine at each sixteenth.
    pub(super) fn to_relieve(&self, cpu: Cpu, tick: u64) -> Option<Cpu> {
        let near = match () {
            () if tick.is_multiple_of(16) => &self.crowded,
            () if tick.is_multiple_of(4) => self.socket(cpu),
            () => self.l3(cpu),
        };
        let waiting = |cpu: Cpu| self[cpu].waiting.len();
        let most = self.crowded.common(near).max_by_key(|&other| (waiting(other), Reverse(other)));
        most.filter(|&from| waiting(from) >= waiting(cpu) + 2)
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
