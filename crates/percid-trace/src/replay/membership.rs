//! The process of each thread, from the whole trace. It is gathered before the trace is followed.

use std::collections::{HashMap, HashSet};

use crate::event::{Cpu, Event, IDLE, KTHREADD, Tid, UNKNOWN, What};
use crate::trace::Trace;

/// Prefixes of the names of kernel threads, for traces that do not show who created them.
const KERNEL_NAMES: [&str; 14] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "cpuhp/",
    "rcu_",
    "kthreadd",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "khungtaskd",
    "kauditd",
    "watchdogd",
    "irq/",
    "jbd2/",
];

/// The facts in the whole trace about threads that existed before it began.
#[derive(Debug, Default)]
pub(super) struct Membership {
    processes: HashMap<Tid, Tid>,
    of_the_kernel: HashSet<Tid>,
    /// Threads whose creation the trace has shown so far.
    born: HashSet<Tid>,
    /// The thread that ran on each CPU when the trace began.
    pub(super) first_running: Vec<Option<Tid>>,
    /// `true` if the trace shows timer ticks.
    pub(super) has_ticks: bool,
}

impl Membership {
    pub(super) fn read(trace: &Trace, cpus: u32) -> Membership {
        let mut all =
            Membership { first_running: vec![None; cpus as usize], ..Membership::default() };
        for event in &trace.events {
            all.take(event, trace);
        }
        all
    }

    fn take(&mut self, &Event { cpu, what, .. }: &Event, trace: &Trace) {
        match what {
            What::Member { thread, process } => {
                self.processes.entry(thread).or_insert(process);
            }
            What::Name { thread, name } => {
                let name = trace.texts.get(name);
                if KERNEL_NAMES.iter().any(|kernel| name.starts_with(kernel)) {
                    self.of_the_kernel.insert(thread);
                }
            }
            What::Switch { prev, .. } => self.ran(cpu, prev),
            What::Fork { child, .. } => drop(self.born.insert(child)),
            What::Tick { .. } => self.has_ticks = true,
            _ => {}
        }
    }

    /// The thread that is switched away from first has been running since the beginning, unless it
    /// was created since.
    fn ran(&mut self, cpu: Cpu, prev: Tid) {
        if self.first_running[cpu as usize].is_none() {
            let first = if self.born.contains(&prev) { UNKNOWN } else { prev };
            self.first_running[cpu as usize] = Some(first);
        }
    }

    /// Returns the process of a thread whose creation the trace does not show, if any event
    /// contains it.
    pub(super) fn process(&self, thread: Tid) -> Option<Tid> {
        self.processes.get(&thread).copied()
    }

    /// Returns `true` if a thread whose creation the trace does not show has no user space. If the
    /// trace lists the members of processes, a thread that is not among them has none.
    pub(super) fn is_kernel(&self, thread: Tid) -> bool {
        let listed = self.processes.is_empty() || self.processes.contains_key(&thread);
        matches!(thread, IDLE | KTHREADD | UNKNOWN)
            || !listed
            || self.of_the_kernel.contains(&thread)
    }

    /// Returns `true` if the two belong to one process, by any part of the trace.
    pub(super) fn are_together(&self, a: Tid, b: Tid) -> bool {
        self.process(a).is_some() && self.process(a) == self.process(b)
    }
}
