//! What is recorded, while it is recorded.

use std::collections::{BTreeSet, HashMap};

use super::snapshot::Snapshot;
use crate::collector::{Collector, Tracepoint};
use crate::event::{Cpu, IDLE, Shares, State, Tid};
use crate::numa;
use crate::trace::{Origin, Trace};

/// Events as they come out of the kernel's buffers, CPU by CPU.
#[derive(Debug, Default)]
pub(super) struct Stream {
    collector: Collector,
    /// For each CPU the time of its last event.
    last: HashMap<Cpu, u64>,
    /// When each thread was created first, of those that were.
    born: HashMap<Tid, u64>,
    /// How many events were lost.
    pub(super) lost: u64,
    /// The threads that scanned their process's memory for NUMA balancing.
    pub(super) scanners: BTreeSet<Tid>,
}

impl Stream {
    /// How many events there are so far.
    pub(super) fn len(&self) -> usize {
        self.collector.len()
    }

    /// Takes in an event. A clock that steps back a little is taken to have stood still.
    pub(super) fn tracepoint(&mut self, time: u64, cpu: Cpu, current: Tid, event: Tracepoint<'_>) {
        let time = self.forward(time, cpu);
        if let Tracepoint::TaskNewtask { pid, .. }
        | Tracepoint::SchedProcessFork { child_pid: pid, .. } = event
        {
            self.born.entry(pid).or_insert(time);
        }
        let scans = matches!(
            event,
            Tracepoint::Numa(numa::Tracepoint::SkipVma { .. } | numa::Tracepoint::Arm { .. })
        );
        if scans {
            self.scanners.insert(current);
        }
        self.collector.tracepoint(time, cpu, current, event);
    }

    /// Takes in what a look at a process found.
    pub(super) fn numa(&mut self, event: numa::Event) {
        self.collector.numa(event);
    }

    /// Takes in an event of which another one of its CPU may have been taken in before.
    pub(super) fn late(&mut self, time: u64, cpu: Cpu, current: Tid, event: Tracepoint<'_>) {
        self.collector.tracepoint(time, cpu, current, event);
    }

    /// Takes in the end of a turn: see [`Collector::switch_from`].
    pub(super) fn switch_from(&mut self, time: u64, cpu: Cpu, prev: Tid, state: State) {
        let time = self.forward(time, cpu);
        self.collector.switch_from(time, cpu, prev, state, IDLE);
    }

    /// Takes in the beginning of a turn: see [`Collector::switch_to`].
    pub(super) fn switch_to(&mut self, time: u64, cpu: Cpu, next: Tid) {
        let time = self.forward(time, cpu);
        self.collector.switch_to(time, cpu, IDLE, next);
    }

    /// Takes in a new thread of which no tracepoint tells.
    pub(super) fn fork(&mut self, time: u64, cpu: Cpu, parent: Tid, child: Tid, shares: Shares) {
        let time = self.forward(time, cpu);
        self.born.entry(child).or_insert(time);
        self.collector.fork(time, cpu, parent, child, &[], shares);
    }

    /// Takes in the CPUs that a thread may run on.
    pub(super) fn affinity(&mut self, time: u64, cpu: Cpu, thread: Tid, cpus: &str) {
        self.collector.affinity(time, cpu, thread, cpus);
    }

    /// Whether a thread was created since the recording began.
    pub(super) fn saw_birth_of(&self, thread: Tid) -> bool {
        self.born.contains_key(&thread)
    }

    fn forward(&mut self, time: u64, cpu: Cpu) -> u64 {
        let last = self.last.entry(cpu).or_insert(time);
        *last = time.max(*last);
        *last
    }

    /// The trace, with the threads that were there when it began.
    pub(super) fn finish(mut self, snapshot: Snapshot, origin: Origin) -> Trace {
        let Snapshot { began, taken, threads } = snapshot;
        let born = &self.born;
        let was_there = |thread: &Tid| born.get(thread).is_none_or(|&born| born > taken);
        for found in threads.into_iter().filter(|found| was_there(&found.thread)) {
            self.collector.member(began, FIRST_CPU, found.thread, found.process);
            self.collector.name(began, FIRST_CPU, found.thread, &found.name);
            if let Some(cpus) = found.cpus {
                self.collector.affinity(began, FIRST_CPU, found.thread, &cpus);
            }
        }
        self.collector.finish(Origin { lost: self.lost, ..origin })
    }
}

/// The CPU of what did not happen on any.
const FIRST_CPU: Cpu = 0;
