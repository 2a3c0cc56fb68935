//! Counter values in turns of threads, by where and when the threads ran before.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;

use percid_sim::cost::{Found, Idle, Prices};
use percid_sim::machine::Machine;
use percid_sim::run_control::RunControl;
use percid_sim::topology::Topology;
use percid_sim::workload::Memory;

use crate::counters::Counted;
use crate::event::{Cpu, Event, IDLE, Tid, UNKNOWN, What};
use crate::replay::TopologyMismatch;
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// Whose turns are looked at.
#[derive(Debug, Clone, Default)]
pub struct CountersSettings {
    /// Turns that begin in this window.
    pub window: Window,
    /// The processes whose threads are analysed; all if it is empty.
    pub processes: Vec<Tid>,
}

/// The result of [`counters`].
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Processes by number.
    pub processes: Vec<(Tid, TurnCounts)>,
    /// Threads in the order in which they are met.
    pub threads: Vec<(ThreadNumber, TurnCounts)>,
    /// Counts by where the thread ran before, and then by how long ago that was.
    pub distances: Vec<Distance>,
    /// Turns in which the processor's counters were lent to others for a while. They are in no figure.
    pub lent: u64,
    /// Number of times that these threads stopped running in the window, by the schedule. There
    /// were as many turns, including those without counter values.
    pub switches: u64,
    /// The identities of the threads.
    pub known: Threads,
    /// `true` if the whole window was analysed.
    pub is_whole: bool,
}

/// Counter values of some turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnCounts {
    /// Number of turns.
    pub turns: u64,
    /// Their time altogether, in nanoseconds.
    pub run_ns: u64,
    /// Sum of each counter, in the order of [`Origin::counters`](crate::Origin::counters).
    pub sums: Vec<u64>,
    /// Median of each counter's values in a turn: of two in the middle the smaller one.
    pub medians: Vec<u64>,
}

/// Turns whose threads ran at the same distance before, about equally long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distance {
    /// The place where the thread ran before.
    pub before: Before,
    /// The smallest of [`PAUSES`] that is longer than the pause; `None` if none is longer or the
    /// pause is not known.
    pub pause_below_ns: Option<u64>,
    /// The counter values.
    pub counts: TurnCounts,
    /// The modelled extra cost of touching 16 kB at the beginning of these turns, compared with
    /// warm caches; `None` if it is not known where the threads ran before.
    pub modelled: Option<Modelled>,
}

/// The modelled extra cost at the beginning of all these turns together: of touching 16 kB,
/// compared with doing so when the core's caches have the data, by the prices of a machine, in
/// nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modelled {
    /// Cost if core and cache had work in the pauses, and that displaced nothing.
    pub warm_ns: u64,
    /// Cost if core and cache idled in the pauses.
    pub cold_ns: u64,
}

/// The place where a thread ran before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Before {
    /// On the same CPU, which ran no other thread since, according to the recorded events.
    Here,
    /// On the same CPU, which ran others since.
    HereBeforeOthers,
    /// On another hardware thread of the core.
    SameCore,
    /// On another core behind the same last-level cache.
    SameL3,
    /// Behind another last-level cache of the node.
    SameNode,
    /// On another node.
    OtherNode,
    /// It is not known.
    Unknown,
}

/// Boundaries between the classes of pauses, in nanoseconds.
pub const PAUSES: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Sums the counter values. Adds processed events to `progress`.
///
/// # Errors
///
/// A machine with too few CPUs.
pub fn counters(
    trace: &Trace,
    machine: &Machine,
    settings: &CountersSettings,
    progress: &RunControl,
) -> Result<Counters, TopologyMismatch> {
    TopologyMismatch::check(trace, machine)?;
    let mut sorting = Sorting {
        trace,
        settings,
        topology: &machine.topology,
        prices: Prices::new(machine, Memory::ZeroPage),
        begin: trace.events.first().map_or(0, |event| event.time),
        known: Threads::there_before(&trace.events),
        course: Course::default(),
        groups: Groups::default(),
        switches: HashMap::new(),
    };
    let is_whole = sorting.follow(progress);
    Ok(sorting.finish(is_whole))
}

/// Turns go by their middle, when the thread certainly runs: the ends have other times in the schedule,
/// by a microsecond or so.
fn middle(turn: &Counted) -> u64 {
    turn.began() + turn.ran / 2
}

struct Sorting<'a> {
    trace: &'a Trace,
    settings: &'a CountersSettings,
    topology: &'a Topology,
    prices: Prices,
    begin: u64,
    known: Threads,
    course: Course,
    groups: Groups,
    switches: HashMap<ThreadNumber, u64>,
}

/// Places of turns in the trace.
#[derive(Default)]
struct Groups {
    processes: BTreeMap<Tid, Vec<usize>>,
    threads: BTreeMap<ThreadNumber, Vec<usize>>,
    /// Turns by where the thread ran before, and by the class of its pause.
    distances: BTreeMap<(Before, usize), (Vec<usize>, Modelled)>,
    lent: u64,
}

/// Events between two looks at whether to stop.
const AT_ONCE: usize = 4096;

impl Sorting<'_> {
    /// Goes through schedule and turns side by side. Returns whether it came to the end.
    fn follow(&mut self, progress: &RunControl) -> bool {
        let Trace { events, counted, .. } = self.trace;
        let mut turns: Vec<usize> = (0..counted.len()).collect();
        turns.sort_by_key(|&place| middle(&counted[place]));
        let mut turns = turns.into_iter().peekable();
        for some in events.chunks(AT_ONCE) {
            if progress.stop.load(Relaxed) {
                return false;
            }
            for event in some {
                while let Some(place) = turns.next_if(|&place| middle(&counted[place]) < event.time)
                {
                    self.turn(place);
                }
                self.event(event);
            }
            progress.done.fetch_add(some.len() as u64, Relaxed);
        }
        turns.for_each(|place| self.turn(place));
        true
    }

    fn event(&mut self, event: &Event) {
        if let What::Switch { prev, next, .. } = event.what {
            let [prev, next] = [prev, next].map(|tid| self.known.meet(tid));
            self.course.switch(event, (prev, next));
            if let Some(prev) = prev.filter(|&prev| self.is_wanted(prev, event.time)) {
                *self.switches.entry(prev).or_default() += 1;
            }
        }
        self.known.take(&event.what);
    }

    /// Returns `true` if a thread is among those to be analysed and the time is in the window.
    fn is_wanted(&self, thread: ThreadNumber, time: u64) -> bool {
        let CountersSettings { window, processes } = self.settings;
        let process = || self.known.get(thread).process_or_self();
        window.contains(time.saturating_sub(self.begin))
            && (processes.is_empty() || processes.contains(&process()))
    }

    fn turn(&mut self, place: usize) {
        let turn = self.trace.counted[place];
        let Some(thread) = self.known.meet(turn.thread) else { return };
        let last = self.course.last(thread, turn.cpu);
        self.course.left(thread, turn.cpu, turn.time);
        if !self.is_wanted(thread, turn.began()) {
            return;
        }
        if turn.uncounted > 0 {
            self.groups.lent += 1;
            return;
        }
        let process = self.known.get(thread).process_or_self();
        self.groups.processes.entry(process).or_default().push(place);
        self.groups.threads.entry(thread).or_default().push(place);
        let before = last.map_or(Before::Unknown, |last| self.distance(&last, turn.cpu));
        let pause = last.map(|last| turn.began().saturating_sub(last.time));
        let class = pause.map_or(PAUSES.len(), |ns| PAUSES.partition_point(|&below| below <= ns));
        let (places, modelled) = self.groups.distances.entry((before, class)).or_default();
        places.push(place);
        if let Some((last, pause)) = last.zip(pause) {
            let cost = |idle| {
                let found = Found::new(self.topology, turn.cpu, Some(last.cpu), idle);
                self.prices.burst(&found).1.saturating_sub(self.prices.hot(&found))
            };
            let idle = Idle { cpu: pause, core: pause, l3: pause };
            modelled.warm_ns = modelled.warm_ns.saturating_add(cost(Idle::default()));
            modelled.cold_ns = modelled.cold_ns.saturating_add(cost(idle));
        }
    }

    fn distance(&self, last: &Last, cpu: Cpu) -> Before {
        let (there, here) = (self.topology.place(last.cpu), self.topology.place(cpu));
        match () {
            () if last.cpu == cpu && last.is_alone => Before::Here,
            () if last.cpu == cpu => Before::HereBeforeOthers,
            () if there.core == here.core => Before::SameCore,
            () if there.l3 == here.l3 => Before::SameL3,
            () if there.node == here.node => Before::SameNode,
            () => Before::OtherNode,
        }
    }

    fn finish(self, is_whole: bool) -> Counters {
        let Sorting { trace, known, groups, switches, .. } = self;
        let Groups { processes, threads, distances, lent } = groups;
        let counts = |places: &[usize]| TurnCounts::from_trace(trace, places);
        let distance =
            |((before, class), (places, modelled)): ((Before, usize), (Vec<usize>, _))| {
                let is_known = before != Before::Unknown;
                Distance {
                    before,
                    pause_below_ns: PAUSES.get(class).copied(),
                    counts: counts(&places),
                    modelled: is_known.then_some(modelled),
                }
            };
        Counters {
            processes: processes
                .iter()
                .map(|(&process, places)| (process, counts(places)))
                .collect(),
            threads: threads.iter().map(|(&thread, places)| (thread, counts(places))).collect(),
            distances: distances.into_iter().map(distance).collect(),
            lent,
            switches: threads.keys().filter_map(|thread| switches.get(thread)).sum(),
            known,
            is_whole,
        }
    }
}

impl TurnCounts {
    fn from_trace(trace: &Trace, places: &[usize]) -> TurnCounts {
        let turns = || places.iter().map(|&place| &trace.counted[place]);
        let counters = trace.origin.counters.len();
        let median = |counter: usize| {
            let mut counts: Vec<u64> = turns().map(|turn| turn.counts[counter]).collect();
            let middle = counts.len().saturating_sub(1) / 2;
            if counts.is_empty() { 0 } else { *counts.select_nth_unstable(middle).1 }
        };
        let sum = |value: &dyn Fn(&Counted) -> u64| turns().map(value).fold(0, u64::saturating_add);
        TurnCounts {
            turns: places.len() as u64,
            run_ns: sum(&|turn| turn.ran),
            sums: (0..counters).map(|counter| sum(&|turn| turn.counts[counter])).collect(),
            medians: (0..counters).map(median).collect(),
        }
    }
}

/// The places of threads and CPUs, by the schedule.
#[derive(Default)]
struct Course {
    /// The CPU on which each thread stopped running last, and the time.
    left: HashMap<ThreadNumber, (Cpu, u64)>,
    /// The time at which each thread last was seen to begin to run, the CPU, and whether that CPU
    /// had run no other thread since the thread left it.
    came: HashMap<ThreadNumber, (Cpu, u64, bool)>,
    /// The thread that each CPU ran last or runs.
    ran: HashMap<Cpu, Option<ThreadNumber>>,
}

/// The previous run of a thread.
#[derive(Debug, Clone, Copy)]
struct Last {
    cpu: Cpu,
    /// Time at which it stopped.
    time: u64,
    /// `true` if the CPU on which it runs now has run no other thread since.
    is_alone: bool,
}

impl Course {
    fn switch(
        &mut self,
        event: &Event,
        (prev, next): (Option<ThreadNumber>, Option<ThreadNumber>),
    ) {
        let Event { time, cpu, what } = *event;
        let What::Switch { prev: prev_tid, next: next_tid, .. } = what else { return };
        if prev_tid != IDLE {
            self.ran.insert(cpu, prev);
        }
        if let Some(prev) = prev {
            self.left(prev, cpu, time);
        }
        if let Some(next) = next {
            let is_alone = self.ran.get(&cpu) == Some(&Some(next));
            self.came.insert(next, (cpu, time, is_alone));
        }
        if next_tid != IDLE && next_tid != UNKNOWN {
            self.ran.insert(cpu, next);
        }
    }

    /// A thread has stopped running.
    fn left(&mut self, thread: ThreadNumber, cpu: Cpu, time: u64) {
        let left = self.left.entry(thread).or_insert((cpu, time));
        if time >= left.1 {
            *left = (cpu, time);
        }
    }

    /// Returns where a thread that runs on this CPU now ran before. The beginning of its current
    /// run need not have been recorded.
    fn last(&self, thread: ThreadNumber, here: Cpu) -> Option<Last> {
        let &(cpu, time) = self.left.get(&thread)?;
        let came = self.came.get(&thread).filter(|came| came.0 == here && came.1 >= time);
        let is_alone = match came {
            Some(&(.., is_alone)) => is_alone,
            None => self.ran.get(&here) == Some(&Some(thread)),
        };
        Some(Last { cpu, time, is_alone })
    }
}
