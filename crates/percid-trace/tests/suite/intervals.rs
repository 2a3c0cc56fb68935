//! Traces of intervals: wherever a recording is cut, the answers for the parts add up to that for the
//! whole.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use percid_sim::machine::Machine;
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Place, Topology};
use percid_trace::event::{Cpu, Event, IDLE, Shares, Stage, State, Tid, What};
use percid_trace::questions::{
    LatencySettings, MigrationsSettings, PreemptionsSettings, UsageSettings, Who, latency,
    migrations, preemptions, usage,
};
use percid_trace::record::{Piece, Sink};
use percid_trace::spool::{Interval, Intervals};
use percid_trace::threads::Threads;
use percid_trace::trace::Origin;
use percid_trace::window::Window;
use percid_trace::{Trace, gaps};

use crate::schedule;

const CPUS: Cpu = 12;

/// The results of the analyses, by the kernel's numbers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answers {
    /// For each thread the number of waits for a CPU, their sum and maximum, and the number after a
    /// preemption.
    waits: BTreeMap<Tid, (u64, u64, u64, u64)>,
    /// Run time of each thread on each CPU.
    ran: BTreeMap<(Tid, Cpu), u64>,
    /// Busy time of each CPU, its idle time, and its idle time while work waited elsewhere.
    cpus: BTreeMap<usize, [u64; 3]>,
    /// Turns and moves of each thread.
    turns: BTreeMap<Tid, (u64, u64)>,
    waited_ns: u64,
    /// For each pair of victim and delaying thread, the time and the number of preemptions.
    delays: BTreeMap<(Tid, Tid), (u64, u64)>,
}

fn machine() -> Machine {
    let place = |cpu| Place { core: cpu, l3: 0, socket: 0, node: 0 };
    let topology = Topology::new((0..CPUS).map(place).collect());
    Machine { topology, ..Machine::preset("epyc-9654").expect("a machine") }
}

impl Answers {
    fn add(&mut self, trace: &Trace, window: Window) {
        let control = RunControl::default();
        let settings = LatencySettings { window, ..LatencySettings::default() };
        let found = latency(trace, &settings, &control);
        for (thread, waits) in &found.threads {
            let sum = self.waits.entry(found.known.get(*thread).tid).or_default();
            sum.0 += waits.run_queue.count;
            sum.1 += waits.run_queue.sum_ns;
            sum.2 = sum.2.max(waits.run_queue.max_ns);
            sum.3 += waits.preempted;
        }
        let found =
            usage(trace, &UsageSettings { window, slices: 1, ..Default::default() }, &control);
        for cell in &found.cells {
            *self.ran.entry((found.known.get(cell.thread).tid, cell.cpu)).or_default() += cell.ns;
        }
        for (cpu, found) in found.cpus.iter().enumerate() {
            let sum = self.cpus.entry(cpu).or_default();
            for slice in &found.slices {
                sum[0] += slice.busy_ns;
                sum[1] += slice.idle_ns;
                sum[2] += slice.idle_while_waiting_ns;
            }
        }
        let settings = MigrationsSettings { window, ..MigrationsSettings::default() };
        let found = migrations(trace, &machine(), &settings, &control).expect("it fits");
        for (thread, travels) in &found.threads {
            let sum = self.turns.entry(found.known.get(*thread).tid).or_default();
            sum.0 += travels.turns;
            sum.1 += travels.moves();
        }
        let settings = PreemptionsSettings { window, ..PreemptionsSettings::default() };
        let found = preemptions(trace, &settings, &control);
        self.waited_ns += found.waited_ns;
        for delay in &found.delays {
            let pair = (found.known.get(delay.victim).tid, tid(&found.known, delay.by));
            let sum = self.delays.entry(pair).or_default();
            sum.0 += delay.ns;
            sum.1 += delay.preempted;
        }
    }

    fn without_delays(self) -> Answers {
        Answers { delays: BTreeMap::new(), ..self }
    }
}

fn tid(known: &Threads, who: Who) -> Tid {
    match who {
        Who::Thread(thread) => known.get(thread).tid,
        Who::Idle => IDLE,
        Who::Unknown => Tid::MAX,
    }
}

/// Cuts a trace into intervals of this length. It comes in pieces of so many events.
fn intervals(trace: &Trace, length: u64, at_once: usize, most: usize) -> Vec<Interval> {
    let mut all = Vec::new();
    let mut sink = Intervals::new(Duration::from_nanos(length), most, |interval| {
        all.push(interval);
        ControlFlow::Continue(())
    });
    sink.begin(&Origin::default()).expect("it begins");
    let pieces = trace.events.chunks(at_once).count();
    for (nr, events) in trace.events.chunks(at_once).enumerate() {
        let next = trace.events.get((nr + 1) * at_once).map(|event| event.time);
        let until = if nr + 1 == pieces { u64::MAX } else { next.unwrap_or(u64::MAX) };
        let asked = events.last().map_or(0, |event| event.time);
        let texts = &trace.texts;
        let piece = Piece {
            events,
            numa: &[],
            counted: &[],
            counters: 0,
            texts,
            lost: nr as u64,
            asked,
            until,
        };
        assert_eq!(sink.take(&piece), Ok(ControlFlow::Continue(())));
    }
    all
}

fn summed(intervals: &[Interval]) -> Answers {
    let mut sums = Answers::default();
    intervals.iter().for_each(|interval| sums.add(&interval.trace, interval.window));
    sums
}

fn asked_whole(trace: &Trace) -> Answers {
    let mut whole = trace.clone();
    gaps::close(&mut whole);
    // The last interval has the moment of the last event.
    let end = whole.events.last().expect("events").time + 1;
    let what = What::Member { thread: IDLE, process: IDLE };
    whole.events.push(Event { time: end, cpu: 0, what });
    let mut answers = Answers::default();
    answers.add(&whole, Window::default());
    answers
}

/// Puts before a trace what every recording soon has: a switch of each CPU, and events of waking.
fn begun(mut trace: Trace) -> Trace {
    let time = trace.events.first().expect("events").time - 10;
    let idle = What::Switch { prev: IDLE, state: State::RUNNABLE, next: IDLE };
    let waking = |stage| What::Wakeup { thread: IDLE, target: 0, stage };
    let mut events: Vec<Event> = [waking(Stage::Waking), waking(Stage::Woken)]
        .map(|what| Event { time, cpu: 0, what })
        .into();
    events.extend((0..CPUS).map(|cpu| Event { time, cpu, what: idle }));
    events.append(&mut trace.events);
    Trace { events, ..trace }
}

const A: Tid = 11;
const B: Tid = 12;
const C: Tid = 13;

/// A is preempted by B, moved while it waits, and runs elsewhere; C is woken from idle, creates D, and
/// ends. D replaces its program. A is about to be woken twice.
fn known() -> Trace {
    const D: Tid = 14;
    let mut trace = Trace::default();
    let name = trace.texts.intern(b"worker");
    let switch = |prev, state, next| What::Switch { prev, state, next };
    let wakeup = |thread, target, stage| What::Wakeup { thread, target, stage };
    let member = |thread, process| What::Member { thread, process };
    let happenings = [
        (0, 0, member(A, A)),
        (0, 0, What::Name { thread: A, name }),
        (0, 0, member(B, A)),
        (0, 0, member(C, C)),
        (10, 0, switch(IDLE, State::RUNNABLE, A)),
        (100, 1, wakeup(B, 0, Stage::Waking)),
        (103, 1, wakeup(B, 0, Stage::Woken)),
        (150, 0, switch(A, State::PREEMPTED, B)),
        (200, 0, wakeup(C, 1, Stage::Waking)),
        (202, 0, wakeup(C, 1, Stage::Woken)),
        (260, 1, switch(IDLE, State::RUNNABLE, C)),
        (300, 2, What::Migrate { thread: A, from: 0, to: 2 }),
        (340, 2, switch(IDLE, State::RUNNABLE, A)),
        (400, 1, What::Fork { parent: C, child: D, shares: Shares::Process }),
        (402, 1, wakeup(D, 3, Stage::New)),
        (430, 3, switch(IDLE, State::RUNNABLE, D)),
        (465, 1, switch(C, State::DEAD, IDLE)),
        (470, 3, What::Exec { thread: D, old: D }),
        (520, 3, switch(D, State::RUNNABLE, IDLE)),
        (600, 2, switch(A, State::SLEEPING, IDLE)),
        (650, 3, switch(IDLE, State::RUNNABLE, D)),
        (700, 0, wakeup(A, 0, Stage::Waking)),
        (720, 0, wakeup(A, 0, Stage::Waking)),
        (730, 0, What::Migrate { thread: A, from: 0, to: 4 }),
        (740, 0, wakeup(A, 4, Stage::Woken)),
        (800, 4, switch(IDLE, State::RUNNABLE, A)),
        (850, 4, What::Tick { thread: A }),
        (900, 4, switch(A, State::PREEMPTED, IDLE)),
        (920, 4, switch(IDLE, State::RUNNABLE, A)),
        (950, 0, switch(B, State::SLEEPING, IDLE)),
        (990, 3, switch(D, State::SLEEPING, IDLE)),
    ];
    let event = |(us, cpu, what): (u64, Cpu, What)| {
        let time = 7_000_000_000 + us * 1000;
        Event { time, cpu, what }
    };
    trace.events = happenings.map(event).into();
    begun(trace)
}

/// The times between which a trace can be cut.
fn lengths(trace: &Trace) -> Vec<u64> {
    let begin = trace.events[0].time;
    let mut lengths: Vec<u64> = trace.events.iter().map(|event| event.time - begin).collect();
    lengths.dedup();
    lengths.into_iter().filter(|&length| length > 1000).flat_map(|at| [at, at + 1]).collect()
}

#[test]
fn wherever_a_known_schedule_is_cut_the_parts_add_up() {
    let trace = known();
    let whole = asked_whole(&trace);
    assert_eq!(whole.waits[&A], (3, 270_000, 190_000, 2), "preempted twice: {whole:?}");
    assert_eq!(whole.waited_ns, 190_000 + 47_000 + 58_000 + 28_000 + 130_000 + 60_000 + 20_000);
    assert!(whole.cpus.values().any(|cpu| cpu[2] > 0), "a CPU idled while work waited elsewhere");
    for length in lengths(&trace) {
        for at_once in [1, 7, trace.events.len()] {
            let parts = intervals(&trace, length, at_once, usize::MAX);
            assert_eq!(summed(&parts), whole, "cut at {length}, {at_once} events at once");
        }
    }
    for length in [1_000, 7_000, 50_000] {
        assert_eq!(summed(&intervals(&trace, length, 3, usize::MAX)), whole, "each {length} ns");
    }
}

/// The control: without what its trace tells of the time before, an interval loses waits and time.
#[test]
fn what_is_told_of_the_time_before_matters() {
    let trace = known();
    let whole = asked_whole(&trace);
    let mut parts = intervals(&trace, 200_000, 3, usize::MAX);
    assert_eq!(summed(&parts), whole);
    for part in &mut parts {
        let begin = part.trace.events[0].time + part.window.from;
        part.trace.events.retain(|event| event.time >= begin);
        part.window = Window { from: 0, to: part.window.to - part.window.from };
    }
    let lacking = summed(&parts);
    assert!(lacking.waits[&A].0 < whole.waits[&A].0, "{lacking:?}");
    assert!(lacking.ran.values().sum::<u64>() < whole.ran.values().sum());
}

/// Threads that come and go, on many CPUs.
#[test]
fn the_parts_of_random_schedules_add_up() {
    for seed in 0..4 {
        let mut trace = random(seed);
        // If only some threads are recorded, the intervals and the whole trace know different ones.
        trace.origin.coverage.filtered = false;
        let whole = asked_whole(&trace).without_delays();
        assert!(whole.turns.len() > 20 && whole.waited_ns > 0);
        let length = trace.events.last().expect("events").time - trace.events[0].time;
        for parts in [2, 3, 10, 97] {
            let parts = intervals(&trace, length / parts, 100, usize::MAX);
            let sums = summed(&parts).without_delays();
            assert_eq!(sums.waits, whole.waits, "seed {seed}, {} parts", parts.len());
            assert_eq!(sums.cpus, whole.cpus, "seed {seed}, {} parts", parts.len());
            assert_eq!(sums, whole, "seed {seed}, {} parts", parts.len());
        }
    }
}

/// If switches are missing, a thread that was taken to run until the end of an interval may later
/// turn out to have stopped before. Only waits and turns still add up.
#[test]
fn waits_add_up_where_switches_are_missing() {
    for seed in 0..4 {
        let mut trace = random(seed);
        let mut nth = 0;
        trace.events.retain(|event| {
            let is_switch = matches!(event.what, What::Switch { .. });
            nth += u32::from(is_switch);
            !is_switch || nth <= 20 || nth % 10 != 0
        });
        let whole = asked_whole(&trace);
        let length = trace.events.last().expect("events").time - trace.events[0].time;
        let parts = intervals(&trace, length / 10, 100, usize::MAX);
        let inferred: u64 = parts.iter().map(|part| part.trace.origin.coverage.inferred).sum();
        assert!(inferred > 20, "{inferred} switches were inferred");
        let sums = summed(&parts);
        assert_eq!((sums.waits, sums.turns), (whole.waits, whole.turns), "seed {seed}");
    }
}

/// Without names: a thread that is given one of the kernel's later is bound to its CPU from then on only.
fn random(seed: u64) -> Trace {
    let mut trace = begun(schedule::plausible(seed, 3000));
    trace.events.retain(|event| !matches!(event.what, What::Name { .. }));
    // Late beginnings are found in files, and a file has no intervals.
    trace.origin.late_cpus.clear();
    trace
}

#[test]
fn what_is_too_much_is_left_out_and_counted_and_the_next_interval_is_whole() {
    let trace = known();
    let all = intervals(&trace, 500_000, 5, usize::MAX);
    let few = intervals(&trace, 500_000, 5, 20);
    assert_eq!((all.len(), few.len()), (2, 2));
    assert!(few[0].left_out > 0 && few[0].window.to < all[0].window.to);
    assert_eq!(few[1].left_out, 0);
    let second = |parts: &[Interval]| summed(&parts[1..]);
    assert_eq!(second(&few), second(&all), "what was left out is still known");
    let events = |interval: &Interval| interval.trace.events.len();
    assert!(events(&few[0]) < events(&all[0]) && events(&few[0]) <= 21);
}

#[test]
fn losses_belong_to_the_interval_in_which_they_are_told() {
    let trace = known();
    let parts = intervals(&trace, 200_000, 5, usize::MAX);
    let pieces = trace.events.chunks(5).count() as u64;
    let lost: u64 = parts.iter().map(|part| part.trace.origin.lost).sum();
    assert_eq!(lost, pieces - 1);
    assert_eq!((parts[0].since, parts[0].until), (0, 200_000));
    assert!(parts.windows(2).all(|pair| pair[0].until == pair[1].since));
}

/// A thread that is named once has its name in every interval, and intervals in which nothing happens are
/// there.
#[test]
fn names_and_running_threads_last() {
    let trace = known();
    let parts = intervals(&trace, 10_000, 5, usize::MAX);
    let quiet = parts.iter().find(|part| part.since == 350_000).expect("one without events");
    let found = usage(
        &quiet.trace,
        &UsageSettings { window: quiet.window, slices: 1, ..Default::default() },
        &RunControl::default(),
    );
    let of_a = found.cells.iter().find(|cell| found.known.get(cell.thread).tid == A);
    let of_a = of_a.expect("A runs on");
    assert_eq!((of_a.cpu, of_a.ns), (2, 10_000));
    let name = found.known.get(of_a.thread).name.expect("a name");
    assert_eq!(quiet.trace.texts.get(name), "worker");
}

/// The only thread on one CPU is preempted by a thread of another process, and comes back later.
/// The thread on the other CPU is not preempted.
#[test]
fn what_runs_between_the_threads_of_a_process_is_not_known() {
    const STRANGER: Tid = 99;
    let switch = |prev, next| What::Switch { prev, state: State::PREEMPTED, next };
    let happenings = [
        (0, 0, What::Member { thread: A, process: A }),
        (0, 1, What::Member { thread: B, process: A }),
        (10, 0, switch(STRANGER, A)),
        (10, 1, switch(IDLE, B)),
        (100, 0, switch(A, STRANGER)),
        (150, 1, switch(B, IDLE)),
        (5000, 0, switch(STRANGER, A)),
    ];
    let event = |(us, cpu, what): (u64, Cpu, What)| Event { time: us * 1000, cpu, what };
    let trace = Trace { events: happenings.map(event).into(), ..Trace::default() };
    let asked = |of_processes: bool| {
        let mut sums = Answers::default();
        let mut sink = Intervals::new(Duration::from_millis(1), usize::MAX, |part| {
            sums.add(&part.trace, part.window);
            ControlFlow::Continue(())
        })
        .of_processes(of_processes);
        let (events, texts) = (&trace.events[..], &trace.texts);
        let piece = Piece {
            events,
            numa: &[],
            counted: &[],
            counters: 0,
            texts,
            lost: 0,
            asked: 0,
            until: u64::MAX,
        };
        assert_eq!(sink.take(&piece), Ok(ControlFlow::Continue(())));
        drop(sink);
        sums
    };
    let control = asked(false);
    assert_eq!((control.ran[&(STRANGER, 0)], control.cpus[&1][1]), (4_910_000, 4_860_001));
    let found = asked(true);
    assert_eq!((found.ran.get(&(STRANGER, 0)), found.cpus[&1][1]), (None, 0));
    assert_eq!((found.ran[&(A, 0)], found.ran[&(B, 1)]), (90_001, 140_000));
    assert_eq!(found.waits[&A], (1, 4_900_000, 4_900_000, 1));
    assert_eq!(found.delays[&(A, STRANGER)].1, 1, "who took its CPU is known");
}

/// A process whose thread gives way to 20,000 strangers, one after the other, which it also wakes.
#[test]
fn strangers_take_no_memory_when_they_are_gone() {
    let mut trace = Trace::default();
    let switch = |prev, next| What::Switch { prev, state: State::SLEEPING, next };
    let mut add = |time, what| trace.events.push(Event { time, cpu: 0, what });
    add(0, What::Member { thread: A, process: A });
    for nr in 0..20_000 {
        let (time, stranger) = (u64::from(nr) * 100, 1000 + nr);
        add(time + 10, switch(IDLE, A));
        add(time + 20, What::Wakeup { thread: stranger, target: 0, stage: Stage::Woken });
        let name = trace.texts.intern(format!("stranger {nr}").as_bytes());
        add(time + 30, What::Name { thread: stranger, name });
        add(time + 30, switch(A, stranger));
    }
    let told = |of_processes: bool| {
        let mut told = Vec::new();
        let mut sink = Intervals::new(Duration::from_nanos(100_000), usize::MAX, |part| {
            let begin = part.trace.events[0].time + part.window.from;
            told.push(part.trace.events.partition_point(|event| event.time < begin));
            ControlFlow::Continue(())
        })
        .of_processes(of_processes);
        for events in trace.events.chunks(100) {
            let until = events.last().map_or(0, |event| event.time);
            let piece = Piece {
                events,
                numa: &[],
                counted: &[],
                counters: 0,
                texts: &trace.texts,
                lost: 0,
                asked: 0,
                until,
            };
            assert_eq!(sink.take(&piece), Ok(ControlFlow::Continue(())));
        }
        drop(sink);
        told.pop().expect("intervals")
    };
    let (kept, control) = (told(true), told(false));
    assert!(kept < 4200 && control > 50_000, "{kept} {control}");
}

#[test]
fn whoever_has_enough_gets_no_more() {
    let trace = known();
    let mut got = 0;
    let mut sink = Intervals::new(Duration::from_micros(100), usize::MAX, |_| {
        got += 1;
        if got == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let (events, texts) = (&trace.events[..], &trace.texts);
    let piece = Piece {
        events,
        numa: &[],
        counted: &[],
        counters: 0,
        texts,
        lost: 0,
        asked: 0,
        until: u64::MAX,
    };
    assert_eq!(sink.take(&piece), Ok(ControlFlow::Break(())));
    drop(sink);
    assert_eq!(got, 3);
}
