//! The events of a recording while it goes on.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::snapshot::ThreadSnapshot;
use crate::collector::{Collector, Tracepoint};
use crate::counters::Counted;
use crate::event::{Cpu, Event, IDLE, Shares, State, Tid, What};
use crate::interner::Interner;
use crate::numa;

/// Events as they come out of the kernel's buffers, CPU by CPU, until they are settled: nothing that
/// happened earlier is still to come.
#[derive(Debug, Default)]
pub(super) struct Stream {
    collector: Collector,
    /// Time of the last event of each CPU.
    last: HashMap<Cpu, u64>,
    /// The threads that existed when the recording began, until they are added.
    snapshot: Option<ThreadSnapshot>,
    /// Creation time of each thread that was created while the snapshot was taken.
    born: HashMap<Tid, u64>,
    /// The living threads of the target, where migrations of others come too.
    targets: Option<HashSet<Tid>>,
    /// Time of the last settled event of each CPU.
    settled: HashMap<Cpu, u64>,
    /// Number of settled events.
    count: u64,
    /// Number of lost events.
    pub(super) lost: u64,
    /// The threads that scanned their process's memory for NUMA balancing.
    pub(super) scanners: BTreeSet<Tid>,
    /// Turns that were counted, and not handed out yet.
    counted: Vec<Counted>,
    /// The threads whose turns are; none: all.
    counted_of: Option<HashSet<Tid>>,
}

/// Events in their order.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) events: Vec<Event>,
    pub(super) numa: Vec<numa::Event>,
    pub(super) counted: Vec<Counted>,
}

impl Stream {
    /// Returns the number of events so far.
    pub(super) fn len(&self) -> u64 {
        self.count + self.collector.len() as u64
    }

    /// The texts of the events that were settled last.
    pub(super) fn texts(&self) -> &Interner {
        self.collector.texts()
    }

    /// The threads that were there when the recording began: their names and processes come first.
    pub(super) fn begin(&mut self, snapshot: ThreadSnapshot) {
        self.snapshot = Some(snapshot);
    }

    /// Leaves out the migrations of all threads but these and those that they create.
    pub(super) fn keep_migrations_of(&mut self, targets: BTreeSet<Tid>) {
        self.targets = Some(targets.into_iter().collect());
    }

    /// Takes in a turn in which something was counted.
    pub(super) fn counted(&mut self, turn: Counted) {
        self.counted.push(turn);
    }

    /// Leaves out what is counted of all threads but these and those that they create.
    pub(super) fn keep_counted_of(&mut self, threads: impl IntoIterator<Item = Tid>) {
        self.counted_of = Some(threads.into_iter().collect());
    }

    /// Takes in an event. A clock that steps back a little is taken to have stood still.
    pub(super) fn tracepoint(&mut self, time: u64, cpu: Cpu, current: Tid, event: Tracepoint<'_>) {
        let time = self.forward(time, cpu);
        if let Tracepoint::TaskNewtask { pid, .. }
        | Tracepoint::SchedProcessFork { child_pid: pid, .. } = event
        {
            self.note_birth(time, pid);
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

    /// Adds the end of a turn: see [`Collector::switch_from`].
    pub(super) fn switch_from(&mut self, time: u64, cpu: Cpu, prev: Tid, state: State) {
        let time = self.forward(time, cpu);
        self.collector.switch_from(time, cpu, prev, state, IDLE);
    }

    /// Adds the beginning of a turn: see [`Collector::switch_to`].
    pub(super) fn switch_to(&mut self, time: u64, cpu: Cpu, next: Tid) {
        let time = self.forward(time, cpu);
        self.collector.switch_to(time, cpu, IDLE, next);
    }

    /// Adds a new thread that no tracepoint reports.
    pub(super) fn fork(&mut self, time: u64, cpu: Cpu, parent: Tid, child: Tid, shares: Shares) {
        let time = self.forward(time, cpu);
        self.note_birth(time, child);
        self.collector.fork(time, cpu, parent, child, &[], shares);
    }

    /// Takes in the CPUs that a thread may run on.
    pub(super) fn affinity(&mut self, time: u64, cpu: Cpu, thread: Tid, cpus: &str) {
        self.collector.affinity(time, cpu, thread, cpus);
    }

    fn forward(&mut self, time: u64, cpu: Cpu) -> u64 {
        let last = self.last.entry(cpu).or_insert(time);
        *last = time.max(*last);
        *last
    }

    fn note_birth(&mut self, time: u64, thread: Tid) {
        if self.snapshot.is_some() {
            self.born.entry(thread).or_insert(time);
        }
    }

    /// Hands out the events before a time, if no earlier ones can follow. The threads of the
    /// snapshot wait until it is known which of them were created during it.
    pub(super) fn settle(&mut self, until: u64) -> Settled {
        if self.snapshot.as_ref().is_some_and(|snapshot| until <= snapshot.taken) {
            return Settled::default();
        }
        if let Some(snapshot) = self.snapshot.take() {
            self.tell(snapshot);
        }
        let (mut events, mut numa) = self.collector.take_before(until);
        if let Some(targets) = &mut self.targets {
            events.retain(|event| is_of(targets, event));
        }
        for (time, cpu) in events.iter_mut().map(|event| (&mut event.time, event.cpu)) {
            *time = not_back(&mut self.settled, cpu, *time);
        }
        numa.sort_by_key(|event| (event.time, event.cpu));
        self.count += (events.len() + numa.len()) as u64;
        let counted = self.settle_counted(until, &events);
        Settled { events, numa, counted }
    }

    /// The run intervals that ended before a time, of threads that lived during these events.
    fn settle_counted(&mut self, until: u64, events: &[Event]) -> Vec<Counted> {
        let (mut counted, rest) = self.counted.drain(..).partition(|turn| turn.time < until);
        self.counted = rest;
        if let Some(threads) = &mut self.counted_of {
            let mut lived = threads.clone();
            for event in events {
                is_of(threads, event);
                if let What::Fork { child: thread, .. } | What::Exec { thread, .. } = event.what {
                    lived.extend(threads.get(&thread));
                }
            }
            counted.retain(|turn: &Counted| lived.contains(&turn.thread));
        }
        counted.sort_by_key(|turn| (turn.time, turn.cpu));
        counted
    }

    /// Forgets what only settled events needed.
    pub(super) fn forget(&mut self) {
        self.collector.forget();
    }

    fn tell(&mut self, snapshot: ThreadSnapshot) {
        let ThreadSnapshot { began, taken, threads } = snapshot;
        let born = std::mem::take(&mut self.born);
        let was_there = |thread: &Tid| born.get(thread).is_none_or(|&born| born > taken);
        for found in threads.into_iter().filter(|found| was_there(&found.thread)) {
            self.collector.member(began, FIRST_CPU, found.thread, found.process);
            self.collector.name(began, FIRST_CPU, found.thread, &found.name);
            if let Some(cpus) = found.cpus {
                self.collector.affinity(began, FIRST_CPU, found.thread, &cpus);
            }
        }
    }
}

/// The CPU of what did not happen on any.
const FIRST_CPU: Cpu = 0;

/// Returns `true` if an event belongs to the target, whose threads begin and end by its events. A
/// migration of another thread does not.
fn is_of(targets: &mut HashSet<Tid>, event: &Event) -> bool {
    match event.what {
        What::Fork { parent, child, .. } if targets.contains(&parent) => {
            targets.insert(child);
        }
        What::Exec { thread, old } if targets.remove(&old) => {
            targets.insert(thread);
        }
        What::Switch { prev, state, .. } if state.is_dead() => drop(targets.remove(&prev)),
        What::Migrate { thread, .. } => return targets.contains(&thread),
        _ => {}
    }
    true
}

/// The time, or that of the last event of the CPU if it is later: what the kernel held back for long.
fn not_back(settled: &mut HashMap<Cpu, u64>, cpu: Cpu, time: u64) -> u64 {
    let last = settled.entry(cpu).or_insert(time);
    *last = time.max(*last);
    *last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::MAX_COUNTERS;
    use crate::record::linux::snapshot::Thread;

    fn found(thread: Tid) -> Thread {
        Thread { thread, process: 7, name: b"found".to_vec(), cpus: None }
    }

    fn whats(settled: &Settled) -> Vec<(u64, What)> {
        settled.events.iter().map(|event| (event.time, event.what)).collect()
    }

    fn migrate(thread: Tid) -> Tracepoint<'static> {
        Tracepoint::SchedMigrateTask { comm: &[], pid: thread, orig_cpu: 0, dest_cpu: 1 }
    }

    fn exit(thread: Tid) -> Tracepoint<'static> {
        Tracepoint::SchedProcessExit { comm: &[], pid: thread }
    }

    #[test]
    fn who_was_there_is_told_first_and_when_it_is_known_who_was_not() {
        let mut stream = Stream::default();
        let threads = vec![found(7), found(8)];
        stream.begin(ThreadSnapshot { began: 10, taken: 30, threads });
        stream.fork(20, 1, 7, 8, Shares::Process);
        stream.tracepoint(40, 0, 7, exit(7));
        assert!(stream.settle(30).events.is_empty(), "thread 8 may yet turn out to be new");
        let settled = whats(&stream.settle(35));
        let told = |what: &What| matches!(what, What::Member { .. } | What::Fork { .. });
        let told: Vec<_> = settled.iter().filter(|(_, what)| told(what)).collect();
        let member = What::Member { thread: 7, process: 7 };
        let fork = What::Fork { parent: 7, child: 8, shares: Shares::Process };
        assert_eq!(told, [&(10, member), &(20, fork)]);
        assert_eq!(whats(&stream.settle(u64::MAX)), [(40, What::Exit { thread: 7 })]);
    }

    #[test]
    fn what_was_held_back_too_long_comes_later_and_no_cpu_goes_back() {
        let mut stream = Stream::default();
        stream.tracepoint(50, 0, 7, exit(7));
        stream.tracepoint(52, 1, 8, exit(8));
        assert_eq!(stream.settle(60).events.len(), 2);
        stream.late(40, 0, 9, exit(9));
        stream.late(51, 2, 10, exit(10));
        let late = whats(&stream.settle(70));
        let [first, second] = [9, 10].map(|thread| What::Exit { thread });
        assert_eq!(late, [(50, first), (51, second)]);
    }

    #[test]
    fn turns_are_counted_of_those_who_lived_and_of_nobody_else() {
        let mut stream = Stream::default();
        stream.keep_counted_of([7]);
        let turn = |time, thread| Counted {
            time,
            cpu: 0,
            thread,
            ran: 1,
            uncounted: 0,
            counts: [0; MAX_COUNTERS],
        };
        let dead = Tracepoint::SchedSwitch {
            prev_comm: &[],
            prev_pid: 8,
            prev_state: State::DEAD.0,
            next_comm: &[],
            next_pid: IDLE,
        };
        let all = [(25, 9), (12, 8), (9, 7), (30, 8), (31, 7)];
        all.into_iter().for_each(|(time, thread)| stream.counted(turn(time, thread)));
        stream.fork(10, 2, 7, 8, Shares::Process);
        stream.fork(11, 2, 10, 9, Shares::Process);
        stream.tracepoint(20, 0, 8, dead);
        let told = |settled: Settled| -> Vec<(u64, Tid)> {
            settled.counted.iter().map(|turn| (turn.time, turn.thread)).collect()
        };
        assert_eq!(told(stream.settle(28)), [(9, 7), (12, 8)]);
        assert_eq!(told(stream.settle(u64::MAX)), [(31, 7)], "another one has that number by now");
    }

    #[test]
    fn migrations_are_those_of_the_targets_living_threads() {
        let mut stream = Stream::default();
        stream.keep_migrations_of(BTreeSet::from([7]));
        let dead = |thread| Tracepoint::SchedSwitch {
            prev_comm: &[],
            prev_pid: thread,
            prev_state: State::DEAD.0,
            next_comm: &[],
            next_pid: IDLE,
        };
        stream.tracepoint(20, 0, 8, dead(8));
        for time in [5, 15, 25] {
            for thread in [7, 8, 9] {
                stream.late(time, 1, IDLE, migrate(thread));
            }
        }
        stream.fork(10, 2, 7, 8, Shares::Process);
        let settled = stream.settle(u64::MAX);
        let moved = settled.events.iter().filter_map(|event| match event.what {
            What::Migrate { thread, .. } => Some((event.time, thread)),
            _ => None,
        });
        assert_eq!(moved.collect::<Vec<_>>(), [(5, 7), (15, 7), (15, 8), (25, 7)]);
    }
}
