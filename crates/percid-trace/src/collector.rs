//! Conversion of the kernel's tracepoints, in any format, to the events of a trace.
//!
//! Every reader and the recorder pass what they decode to a [`Collector`]. Differences of formats
//! are resolved here once: facts that a format repeats, expresses differently or leaves out. So the
//! same schedule gives the same events in any format.
//!
//! - `task_newtask`, or a record of `perf` in its place, and `sched_process_fork` report the same
//!   thread, one after the other on the same CPU: one [`What::Fork`].
//! - Names are part of many tracepoints: a [`What::Name`] comes before the first event that has a
//!   new one.
//! - If only the threads of a process are recorded, perf reports a switch between two of them
//!   twice, once for each thread: see [`Collector::switch_to`].
//! - CPUs are read one after the other, and their times interleave: events are sorted by time and
//!   CPU.

use std::collections::HashMap;

use crate::event::{Cpu, Event, IDLE, Shares, Stage, State, Tid, UNKNOWN, What};
use crate::interner::{Interner, Text};
use crate::numa;
use crate::numa_events::NumaEvents;
use crate::trace::{Origin, Trace};

/// A tracepoint of the kernel, by its fields. Names (`comm`) are as in the record, up to the first
/// zero byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the kernel's")]
pub enum Tracepoint<'a> {
    /// `sched:sched_switch`. `prev_comm` is empty if the format does not contain it.
    SchedSwitch {
        prev_comm: &'a [u8],
        prev_pid: Tid,
        prev_state: u32,
        next_comm: &'a [u8],
        next_pid: Tid,
    },
    /// `sched:sched_waking`
    SchedWaking { comm: &'a [u8], pid: Tid, target_cpu: Cpu },
    /// `sched:sched_wakeup`
    SchedWakeup { comm: &'a [u8], pid: Tid, target_cpu: Cpu },
    /// `sched:sched_wakeup_new`
    SchedWakeupNew { comm: &'a [u8], pid: Tid, target_cpu: Cpu },
    /// `sched:sched_migrate_task`
    SchedMigrateTask { comm: &'a [u8], pid: Tid, orig_cpu: Cpu, dest_cpu: Cpu },
    /// `sched:sched_process_fork`
    SchedProcessFork { parent_pid: Tid, child_comm: &'a [u8], child_pid: Tid },
    /// `task:task_newtask`
    TaskNewtask { comm: &'a [u8], pid: Tid, clone_flags: u64 },
    /// `task:task_rename`
    TaskRename { pid: Tid, newcomm: &'a [u8] },
    /// `sched:sched_process_exec`
    SchedProcessExec { pid: Tid, old_pid: Tid },
    /// `sched:sched_process_exit`
    SchedProcessExit { comm: &'a [u8], pid: Tid },
    /// `rseq:rseq_update`
    RseqUpdate { node_id: u32, mm_cid: u32 },
    /// `timer:hrtimer_expire_entry` of the timer tick
    Tick,
    /// A tracepoint of NUMA balancing.
    Numa(numa::Tracepoint),
}

/// No CPU switches to a thread and away from it again in less than this time, in nanoseconds. The two
/// ends of one switch were 0.9 us apart on a virtual machine of 2026; with the idle thread in between, 59
/// us and more.
const DETOUR: u64 = 1500;

/// The kernel's longest name of a thread, in bytes.
const COMM: usize = 15;

/// Collects events.
#[derive(Debug, Default)]
pub struct Collector {
    events: Vec<Event>,
    texts: Interner,
    /// The name that was last seen on each CPU for each thread.
    names: HashMap<(Cpu, Tid), Text>,
    /// The thread that was last created on each CPU, as long as there was no event after that.
    newborn: HashMap<Cpu, Tid>,
    /// The time at which each CPU last switched away from a thread, and the place of that event, if
    /// it was reported without the next thread.
    left: HashMap<Cpu, (u64, usize)>,
    /// The name of each thread in the last event with one, among the events that were handed out.
    told: HashMap<Tid, Text>,
    numa: NumaEvents,
}

/// The most texts, in bytes, and names that are kept of what has been handed out.
const KEPT_TEXT: usize = 1 << 20;
const KEPT_NAMES: usize = 1 << 16;

impl Collector {
    /// An empty collector with memory for this number of events; a hint, which may be wrong.
    pub fn with_capacity(events: usize) -> Collector {
        Collector { events: Vec::with_capacity(events), ..Collector::default() }
    }

    /// Takes in a tracepoint that was hit on `cpu` while `current` ran there (`common_pid`). The
    /// times of one CPU must not go back.
    pub fn tracepoint(&mut self, time: u64, cpu: Cpu, current: Tid, tracepoint: Tracepoint<'_>) {
        use Tracepoint::*;
        let what = match tracepoint {
            SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid } => {
                self.name(time, cpu, prev_pid, prev_comm);
                self.name(time, cpu, next_pid, next_comm);
                What::Switch { prev: prev_pid, state: State(prev_state), next: next_pid }
            }
            SchedWaking { comm, pid, target_cpu } => {
                self.wakeup(time, cpu, comm, pid, target_cpu, Stage::Waking)
            }
            SchedWakeup { comm, pid, target_cpu } => {
                self.wakeup(time, cpu, comm, pid, target_cpu, Stage::Woken)
            }
            SchedWakeupNew { comm, pid, target_cpu } => {
                self.wakeup(time, cpu, comm, pid, target_cpu, Stage::New)
            }
            SchedMigrateTask { comm, pid, orig_cpu, dest_cpu } => {
                self.name(time, cpu, pid, comm);
                What::Migrate { thread: pid, from: orig_cpu, to: dest_cpu }
            }
            TaskNewtask { comm, pid, clone_flags } => {
                let shares = Shares::from_clone_flags(clone_flags);
                return self.fork(time, cpu, current, pid, comm, shares);
            }
            SchedProcessFork { parent_pid, child_comm, child_pid } => {
                if self.newborn.remove(&cpu) != Some(child_pid) {
                    self.create(time, cpu, parent_pid, child_pid, child_comm, Shares::Unknown);
                }
                return;
            }
            TaskRename { pid, newcomm } => {
                // New even if it was the last one seen on this CPU: another may have been seen
                // elsewhere since.
                self.names.remove(&(cpu, pid));
                return self.name(time, cpu, pid, newcomm);
            }
            SchedProcessExec { pid, old_pid } => What::Exec { thread: pid, old: old_pid },
            SchedProcessExit { comm, pid } => {
                self.name(time, cpu, pid, comm);
                What::Exit { thread: pid }
            }
            RseqUpdate { node_id, mm_cid } => {
                What::Id { thread: current, node: node_id, id: mm_cid }
            }
            Tick => What::Tick { thread: current },
            Numa(tracepoint) => return self.numa.tracepoint(time, cpu, current, tracepoint),
        };
        self.events.push(Event { time, cpu, what });
    }

    /// Adds the end of a thread's turn, if the next thread is not reported: `next` is used in its
    /// place.
    pub fn switch_from(&mut self, time: u64, cpu: Cpu, prev: Tid, state: State, next: Tid) {
        self.left.insert(cpu, (time, self.events.len()));
        self.events.push(Event { time, cpu, what: What::Switch { prev, state, next } });
    }

    /// Adds the beginning of a thread's turn, if the thread before it is not reported: `prev`
    /// is used in its place. If the turn of another thread has ended just before, both are one
    /// switch.
    pub fn switch_to(&mut self, time: u64, cpu: Cpu, prev: Tid, next: Tid) {
        let left = self.left.remove(&cpu).filter(|(left, _)| time.saturating_sub(*left) < DETOUR);
        if let Some((_, place)) = left {
            if let What::Switch { next: stand_in, .. } = &mut self.events[place].what {
                *stand_in = next;
                return;
            }
        }
        let what = What::Switch { prev, state: State::RUNNABLE, next };
        self.events.push(Event { time, cpu, what });
    }

    /// Adds a name of a thread. The idle thread has no name, and an empty name is ignored.
    pub fn name(&mut self, time: u64, cpu: Cpu, thread: Tid, comm: &[u8]) {
        let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len()).min(COMM);
        if end == 0 || thread == IDLE || thread == UNKNOWN {
            return;
        }
        let name = self.texts.intern(&comm[..end]);
        if self.names.insert((cpu, thread), name) != Some(name) {
            self.events.push(Event { time, cpu, what: What::Name { thread, name } });
        }
    }

    /// Takes in a thread that was there before.
    pub fn member(&mut self, time: u64, cpu: Cpu, thread: Tid, process: Tid) {
        self.events.push(Event { time, cpu, what: What::Member { thread, process } });
    }

    /// Takes in the CPUs that a thread may run on, in the kernel's form of lists.
    pub fn affinity(&mut self, time: u64, cpu: Cpu, thread: Tid, cpus: &str) {
        let cpus = self.texts.intern(cpus.as_bytes());
        self.events.push(Event { time, cpu, what: What::Affinity { thread, cpus } });
    }

    /// Adds a new thread that no tracepoint reports, except perhaps `sched_process_fork`, which
    /// then comes next.
    pub fn fork(
        &mut self,
        time: u64,
        cpu: Cpu,
        parent: Tid,
        child: Tid,
        comm: &[u8],
        shares: Shares,
    ) {
        self.newborn.insert(cpu, child);
        self.create(time, cpu, parent, child, comm, shares);
    }

    fn create(
        &mut self,
        time: u64,
        cpu: Cpu,
        parent: Tid,
        child: Tid,
        comm: &[u8],
        shares: Shares,
    ) {
        // The number may have belonged to another thread before.
        self.names.remove(&(cpu, child));
        self.events.push(Event { time, cpu, what: What::Fork { parent, child, shares } });
        self.name(time, cpu, child, comm);
    }

    fn wakeup(
        &mut self,
        time: u64,
        cpu: Cpu,
        comm: &[u8],
        thread: Tid,
        target: Cpu,
        stage: Stage,
    ) -> What {
        self.name(time, cpu, thread, comm);
        What::Wakeup { thread, target, stage }
    }

    /// Takes in what a look at a process found.
    pub fn numa(&mut self, event: numa::Event) {
        self.numa.push(event);
    }

    /// Returns the number of events so far.
    pub fn len(&self) -> usize {
        self.events.len() + self.numa.len()
    }

    /// Returns `true` if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The texts of the events.
    pub fn texts(&self) -> &Interner {
        &self.texts
    }

    /// Hands out what happened before a time, in the order of a trace: for what is longer than
    /// memory. Everything earlier must have been taken in.
    pub fn take_before(&mut self, until: u64) -> (Vec<Event>, Vec<numa::Event>) {
        self.left.retain(|_, (time, _)| *time >= until);
        let (mut ready, mut rest) = (Vec::new(), Vec::new());
        for (place, event) in self.events.drain(..).enumerate() {
            if event.time < until {
                ready.push(event);
                continue;
            }
            match self.left.get_mut(&event.cpu) {
                Some((_, left)) if *left == place => *left = rest.len(),
                _ => {}
            }
            rest.push(event);
        }
        self.events = rest;
        self.order(&mut ready);
        (ready, self.numa.take_before(until))
    }

    /// Forgets texts and names that are known from what was handed out, if they have become many.
    /// The numbers of all texts change then.
    pub fn forget(&mut self) {
        let names = self.names.len().max(self.told.len());
        if self.texts.bytes() < KEPT_TEXT && names < KEPT_NAMES {
            return;
        }
        let old = std::mem::take(&mut self.texts);
        self.names.clear();
        self.told.clear();
        for event in &mut self.events {
            if let What::Name { name: text, .. } | What::Affinity { cpus: text, .. } =
                &mut event.what
            {
                *text = self.texts.intern(old.get(*text).as_bytes());
            }
        }
    }

    /// The trace.
    pub fn finish(mut self, origin: Origin) -> Trace {
        let mut events = std::mem::take(&mut self.events);
        self.order(&mut events);
        let numa = self.numa.finish();
        Trace { origin, events, numa, counted: Vec::new(), texts: self.texts }
    }

    /// Sorts events that follow those already handed out, and leaves out repeated names.
    fn order(&mut self, events: &mut Vec<Event>) {
        let key = |event: &Event| (event.time, event.cpu);
        if !events.is_sorted_by_key(key) {
            events.sort_by_key(key);
        }
        let told = &mut self.told;
        events.retain(|event| match event.what {
            What::Name { thread, name } => told.insert(thread, name) != Some(name),
            What::Fork { child, .. } => {
                told.remove(&child);
                true
            }
            _ => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of threads with names on three CPUs, which are read one after the other, ten at a time.
    fn hits(mut take: impl FnMut(&mut Collector, u64), collector: &mut Collector) {
        for round in 0..200u64 {
            for cpu in 0..3 {
                for nr in 0..10 {
                    let time = 10_000 * (10 * round + nr) + 700 * u64::from(cpu);
                    let thread = 7 + (nr as Tid + cpu) % 5;
                    let name = format!("name {}", (round / 50 + u64::from(thread)) % 7);
                    collector.name(time, cpu, thread, name.as_bytes());
                    collector.switch_from(time, cpu, thread, State::SLEEPING, IDLE);
                    collector.switch_to(time + 600 + 500 * nr, cpu, IDLE, thread + 1);
                }
            }
            take(collector, 10_000 * 10 * (round + 1) - 35_000);
        }
    }

    /// Also with texts and names that are forgotten on the way, but for names that are told again.
    #[test]
    fn what_is_handed_out_on_the_way_is_what_there_is_at_the_end() {
        let mut whole = Collector::default();
        hits(|_, _| {}, &mut whole);
        let whole = whole.finish(Origin::default());
        let (mut parts, mut pieces) = (Collector::default(), 0);
        let mut events = Vec::new();
        let take = |parts: &mut Collector, until| {
            let (some, _) = parts.take_before(until);
            assert!(some.iter().all(|event| event.time < until));
            pieces += usize::from(!some.is_empty());
            events.extend(some);
        };
        hits(take, &mut parts);
        events.extend(parts.take_before(u64::MAX).0);
        assert!(pieces > 190);
        assert_eq!(events, whole.events);
        let merged = |event: &&Event| matches!(event.what, What::Switch { prev, next, .. } if prev * next > 0);
        assert!(events.iter().filter(merged).count() > 500, "two ends of one switch");
    }

    #[test]
    fn texts_that_are_known_no_more_are_told_again() {
        let mut collector = Collector::default();
        let mut longest = 0;
        for time in 0..200_000 {
            collector.name(time, 0, 7, format!("thread {time}").as_bytes());
            collector.take_before(time);
            collector.forget();
            longest = longest.max(collector.texts().bytes());
        }
        assert!(longest < KEPT_TEXT + 100, "{longest}");
        let (last, _) = collector.take_before(u64::MAX);
        let What::Name { name, .. } = last[0].what else { panic!("{last:?}") };
        assert_eq!(collector.texts().get(name), "thread 199999");
    }
}
