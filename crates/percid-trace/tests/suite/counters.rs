//! Counter values in turns of threads: compared with `perf`'s output for the same file, of a
//! program whose counts are known by construction, and of made-up turns.

use crate::fixture;

use std::collections::{BTreeMap, HashMap};

use fixture::{bytes, trace};
use percid_sim::cost::{Found, Idle, Prices};
use percid_sim::machine::Machine;
use percid_sim::run_control::RunControl;
use percid_sim::workload::Memory;
use percid_trace::counters::{Counted, MAX_COUNTERS};
use percid_trace::event::{Cpu, Event, IDLE, Shares, State, Tid, What};
use percid_trace::questions::{self, Before, Counters, CountersSettings, Distance};
use percid_trace::trace::{Origin, Trace};
use percid_trace::window::Window;

const US: u64 = 1000;
const MS: u64 = 1000 * US;

fn ask_with(trace: &Trace, machine: &str, settings: &CountersSettings) -> Counters {
    let machine = Machine::preset(machine).expect("a preset");
    let found = questions::counters(trace, &machine, settings, &RunControl::default());
    let found = found.expect("a machine with enough CPUs");
    assert!(found.is_whole);
    found
}

fn ask(trace: &Trace) -> Counters {
    ask_with(trace, "epyc-9654", &CountersSettings::default())
}

/// A switch, and what `perf script` says that each event of the group has counted since the one before.
struct Line {
    time: u64,
    cpu: Cpu,
    prev: Tid,
    counted: BTreeMap<String, u64>,
}

/// `pages 12 [001] 17.000000123:   37   page-faults:`; an event that has counted nothing has no line.
fn lines(script: &str) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    for line in script.lines() {
        let (head, event) = line.split_once("] ").expect("a CPU");
        let (head, cpu) = head.rsplit_once('[').expect("a CPU");
        let prev: i64 =
            head.split_whitespace().next_back().and_then(|tid| tid.parse().ok()).expect("a thread");
        let cpu: Cpu = cpu.parse().expect("a CPU");
        let mut words = event.split_whitespace();
        let time = words.next().expect("a time").trim_end_matches(':').replace('.', "");
        let time: u64 = time.parse().expect("a time");
        let period: u64 = words.next().and_then(|period| period.parse().ok()).expect("a count");
        let name = words.next().expect("an event").trim_end_matches(':').to_owned();
        if name == "sched:sched_switch" {
            let prev = prev as Tid;
            all.push(Line { time, cpu, prev, counted: BTreeMap::new() });
        } else {
            let last = all.iter_mut().rfind(|last| (last.time, last.cpu) == (time, cpu));
            last.expect("the switch comes first").counted.insert(name, period);
        }
    }
    all
}

#[test]
fn counts_of_perf_data_are_those_of_perf_script() {
    let data = trace("counters.data");
    assert_eq!(data.origin.counters, ["page-faults", "task-clock"]);
    let script = String::from_utf8(bytes("counters.script.txt")).expect("text");
    let lines = lines(&script);
    let mut before: HashMap<Cpu, u64> = HashMap::new();
    let mut counted = data.counted.iter().peekable();
    let mut faults = 0;
    for Line { time, cpu, prev, counted: by_perf } in &lines {
        let began = before.insert(*cpu, *time);
        let Some(turn) = counted.next_if(|turn| (turn.time, turn.cpu) == (*time, *cpu)) else {
            continue;
        };
        assert_eq!(began, Some(turn.began()), "from one switch of the CPU to the next");
        // perf has no thread where one has ended.
        assert!(turn.thread == *prev || *prev == Tid::MAX, "{turn:?}");
        let of = |name: &str| by_perf.get(name).copied().unwrap_or(0);
        assert_eq!(turn.counts[..2], [of("page-faults"), of("task-clock")], "{turn:?}");
        assert_eq!((turn.uncounted, &turn.counts[2..]), (0, &[0; MAX_COUNTERS - 2][..]));
        faults += turn.counts[0];
    }
    assert_eq!(counted.next(), None, "every turn is in the text");
    assert!(data.counted.len() > 50 && faults > 37 * 15, "{} turns", data.counted.len());
}

/// `pages 37 50`: fifty times a program touches 37 pages that it did not have, and sleeps then.
#[test]
fn a_program_that_touches_as_many_pages_in_each_turn_has_as_many_page_faults() {
    let trace = trace("counters.parquet");
    let found = ask(&trace);
    let [(_, all)] = &found.processes[..] else { panic!("one process: {:?}", found.processes) };
    assert_eq!((all.turns, found.switches, found.lent), (58, 58, 0), "every turn was counted");
    assert_eq!(all.medians[0], 37);
    let same = trace.counted.iter().filter(|turn| turn.counts[0] == 37).count();
    assert!(same >= 42, "{same} turns of 37: it had to stop in the middle of some");
    // The beginning and end of the program touch some pages too.
    assert!((37 * 50..37 * 50 + 120).contains(&all.sums[0]), "{}", all.sums[0]);
    let clock = all.sums[1] as f64 / all.run_ns as f64;
    assert!((0.97..1.03).contains(&clock), "the clock of a CPU goes as time does: {clock}");
}

const A: Tid = 11;
const B: Tid = 12;
const C: Tid = 13;

/// A turn of a thread, in microseconds since the first event, and what was counted in it.
type Made = (Tid, Cpu, u64, u64, u64);

/// A trace of these turns on their CPUs, with idle time between them: the counted ones are a little
/// later than the switches, as they are.
fn made(turns: &[Made]) -> Trace {
    let begin = 5_000 * MS;
    let event = |us: u64, cpu, what| Event { time: begin + us * US, cpu, what };
    let member =
        |thread| event(0, 0, What::Member { thread, process: if thread == C { C } else { A } });
    let mut events: Vec<Event> = [A, B, C].map(member).into();
    let mut counted = Vec::new();
    for &(thread, cpu, since, until, count) in turns {
        // One that follows at once is switched to by the one before.
        let follows = |other: &&Made| other.1 == cpu && other.3 == since;
        let prev = turns.iter().find(follows).map_or(IDLE, |other| other.0);
        events.push(event(since, cpu, What::Switch { prev, state: State::SLEEPING, next: thread }));
        let is_followed = turns.iter().any(|other| other.1 == cpu && other.2 == until);
        if !is_followed {
            let what = What::Switch { prev: thread, state: State::SLEEPING, next: IDLE };
            events.push(event(until, cpu, what));
        }
        let mut counts = [0; MAX_COUNTERS];
        counts[..2].copy_from_slice(&[count, 2 * count]);
        let (time, ran) = (begin + until * US + 300, (until - since) * US);
        counted.push(Counted { time, cpu, thread, ran, uncounted: 0, counts });
    }
    events.sort_by_key(|event| (event.time, event.cpu));
    counted.sort_by_key(|turn| (turn.time, turn.cpu));
    let counters = vec!["cycles".to_owned(), "cache-misses".to_owned()];
    Trace { origin: Origin { counters, ..Origin::default() }, events, counted, ..Trace::default() }
}

/// Found by fuzzing: perf's names of raw events contain commas.
#[test]
fn counters_with_commas_in_their_names_stay_apart_in_a_table() {
    let mut trace = made(&[(A, 0, 0, 100, 7), (B, 1, 50, 200, 9)]);
    trace.origin.counters = ["cpu/event=0xc0,umask=0/", "cycles"].map(str::to_owned).into();
    let mut file = Vec::new();
    percid_trace::parquet::write(&trace, &mut file).expect("memory takes everything");
    let read = percid_trace::parquet::read_bytes(file).expect("a table");
    assert_eq!((&read.origin.counters, &read.counted), (&trace.origin.counters, &trace.counted));
}

/// Returns where the turns of A ran before, with the pause's class and the first counter's value.
fn distances(found: &Counters) -> Vec<(Before, Option<u64>, u64)> {
    let told =
        |distance: &Distance| (distance.before, distance.pause_below_ns, distance.counts.sums[0]);
    found.distances.iter().map(told).collect()
}

/// On this machine CPU 192 is the other thread of CPU 0's core, 1 has its cache, 8 its node.
#[test]
fn turns_are_told_apart_by_where_and_when_the_thread_ran_before() {
    let turns = [
        (A, 0, 100, 200, 1),
        (A, 0, 205, 300, 10),
        (B, 0, 310, 320, 0),
        (A, 0, 350, 400, 100),
        (A, 192, 900, 1000, 1_000),
        (A, 1, 1005, 1100, 10_000),
        (A, 8, 1105, 1200, 100_000),
        (A, 96, 21_200, 21_300, 1_000_000),
        (A, 96, 321_300, 321_400, 10_000_000),
    ];
    let found = ask(&made(&turns));
    let us = |us| Some(us * US);
    let expected = [
        (Before::Here, us(10), 10),
        (Before::Here, None, 10_000_000),
        (Before::HereBeforeOthers, us(100), 100),
        (Before::SameCore, us(1000), 1_000),
        (Before::SameL3, us(10), 10_000),
        (Before::SameNode, us(10), 100_000),
        (Before::OtherNode, us(100_000), 1_000_000),
        // Also the only turn of B, in which nothing was counted.
        (Before::Unknown, None, 1),
    ];
    assert_eq!(distances(&found), expected);
    let unknown = found.distances.last().expect("eight");
    assert_eq!((unknown.counts.turns, unknown.modelled), (2, None));
}

/// Beside each stands what the simulator's prices say, not something that was computed anew.
#[test]
fn the_model_is_the_simulators() {
    let turns = [(A, 0, 100, 200, 1), (A, 8, 5200, 5300, 1), (A, 0, 10_300, 10_400, 1)];
    let found = ask(&made(&turns));
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let prices = Prices::new(&machine, Memory::ZeroPage);
    let extra = |idle| {
        let found = Found::new(&machine.topology, 0, Some(8), idle);
        prices.burst(&found).1 - prices.hot(&found)
    };
    let pause = 5000 * US - 300;
    let cold = extra(Idle { cpu: pause, core: pause, l3: pause });
    let modelled = found.distances[0].modelled.expect("it ran before");
    assert_eq!(found.distances[0].before, Before::SameNode);
    assert_eq!(modelled.warm_ns, 2 * extra(Idle::default()), "two turns");
    assert!(modelled.warm_ns > 0 && modelled.cold_ns > modelled.warm_ns);
    assert!(modelled.cold_ns.abs_diff(2 * cold) <= 2, "{modelled:?} {cold}");
    // The control: staying costs nothing more.
    let stayed = ask(&made(&[(A, 0, 100, 200, 1), (A, 0, 5200, 5300, 1)]));
    assert_eq!(stayed.distances[0].modelled.map(|modelled| modelled.warm_ns), Some(0));
}

#[test]
fn medians_sums_and_times_are_those_of_the_turns() {
    let turns = [
        (A, 0, 100, 200, 1),
        (B, 0, 200, 250, 7),
        (A, 0, 250, 260, 1000),
        (A, 1, 300, 340, 3),
        (C, 2, 300, 400, 4),
    ];
    let found = ask(&made(&turns));
    let [(first, a), (second, c)] = &found.processes[..] else { panic!("{:?}", found.processes) };
    assert_eq!((*first, *second), (A, C));
    assert_eq!(
        (a.turns, a.run_ns, &a.sums[..], &a.medians[..]),
        (4, 200 * US, &[1011, 2022][..], &[3, 6][..])
    );
    assert_eq!((c.turns, &c.sums[..], &c.medians[..]), (1, &[4, 8][..], &[4, 8][..]));
    let threads: Vec<_> = found
        .threads
        .iter()
        .map(|(thread, counts)| (found.known.get(*thread).tid, counts.turns))
        .collect();
    assert_eq!(threads, [(A, 3), (B, 1), (C, 1)]);
    assert_eq!(found.switches, 5);
}

#[test]
fn turns_in_which_counters_were_lent_are_left_out_and_counted() {
    let mut trace = made(&[(A, 0, 100, 200, 1), (A, 0, 300, 400, 50), (A, 0, 500, 600, 3)]);
    trace.counted[1].uncounted = 1;
    let found = ask(&trace);
    assert_eq!((found.lent, found.switches), (1, 3));
    assert_eq!((found.processes[0].1.turns, found.processes[0].1.sums[0]), (2, 4));
}

#[test]
fn windows_and_processes_choose_turns_by_their_beginning() {
    let trace = made(&[
        (A, 0, 100, 200, 1),
        (C, 0, 300, 400, 10),
        (A, 0, 500, 600, 100),
        (A, 0, 700, 800, 1000),
    ]);
    let sum = |from: u64, to: u64, processes: &[Tid]| -> u64 {
        let window = Window { from: from * US, to: to * US };
        let settings = CountersSettings { window, processes: processes.to_vec() };
        let found = ask_with(&trace, "epyc-9654", &settings);
        found.processes.iter().map(|(_, counts)| counts.sums[0]).sum()
    };
    assert_eq!(sum(0, 1000, &[]), 1111);
    assert_eq!(sum(0, 1000, &[A]), 1101);
    assert_eq!(sum(250, 650, &[]), 110);
    assert_eq!(sum(250, 550, &[C]), 10);
    // A turn before the window still counts as the place where the thread ran before.
    let window = Window { from: 650 * US, to: u64::MAX };
    let found = ask_with(&trace, "epyc-9654", &CountersSettings { window, processes: Vec::new() });
    assert_eq!(distances(&found), [(Before::Here, Some(1000 * US), 1000)]);
    let cut = Window { from: 450 * US, to: 650 * US }.cut(&trace);
    assert_eq!(cut.counted.iter().map(|turn| turn.counts[0]).collect::<Vec<_>>(), [100]);
}

/// A number that is used again is another thread, though both are counted under it.
#[test]
fn a_new_thread_with_an_old_number_has_not_run_before() {
    let mut trace = made(&[(B, 0, 100, 200, 1), (B, 0, 500, 600, 10)]);
    let time = |us: u64| trace.events[0].time + us * US;
    let (dead, born) = (time(200), time(400));
    let dies = |event: &&mut Event| event.time == dead;
    let last = trace.events.iter_mut().find(dies).expect("a switch");
    last.what = What::Switch { prev: B, state: State::DEAD, next: IDLE };
    let fork = What::Fork { parent: A, child: B, shares: Shares::Nothing };
    trace.events.push(Event { time: born, cpu: 0, what: fork });
    trace.events.sort_by_key(|event| event.time);
    let found = ask(&trace);
    assert_eq!(distances(&found), [(Before::Unknown, None, 11)]);
    let processes: Vec<_> = found.processes.iter().map(|(process, _)| *process).collect();
    assert_eq!(processes, [A, B]);
}

#[test]
fn a_machine_with_too_few_cpus_is_refused_also_where_only_a_turn_shows_it() {
    let mut trace = made(&[(A, 0, 100, 200, 1)]);
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let settings = CountersSettings::default();
    assert!(questions::counters(&trace, &machine, &settings, &RunControl::default()).is_ok());
    trace.counted[0].cpu = 5000;
    assert!(questions::counters(&trace, &machine, &settings, &RunControl::default()).is_err());
}

#[cfg(target_os = "linux")]
mod live {
    //! Recorded here, by the kernel's own counters, which every machine has.

    use std::ffi::OsString;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use percid_trace::counters::Counter;
    use percid_trace::record::{Backend, Options, Refusal, Target, record};

    use super::*;

    const PAGES: &str = "PERCID_COUNTERS_PAGES";
    const ROUNDS: usize = 40;

    /// The program: so many pages that it did not have in each round, and a pause. Without their number it
    /// is a test that has nothing to do.
    #[test]
    fn program() {
        let Some(pages) = std::env::var(PAGES).ok().and_then(|pages| pages.parse().ok()) else {
            return;
        };
        pin();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // So that the CPU does not idle: some kernels do not tell when it ceases to.
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
            for _ in 0..ROUNDS {
                touch(pages);
                std::thread::sleep(Duration::from_millis(2));
            }
            is_over.store(true, Relaxed);
        });
    }

    /// Restricts the calling thread, and those that it creates, to one CPU.
    fn pin() {
        // SAFETY: all zero is an empty set, and the calls stay within it.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
            let last = (0..libc::CPU_SETSIZE as usize).rfind(|&cpu| libc::CPU_ISSET(cpu, &set));
            libc::CPU_ZERO(&mut set);
            libc::CPU_SET(last.expect("a CPU"), &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
        }
    }

    fn touch(pages: usize) {
        if pages == 0 {
            return;
        }
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which is written to within its length and never used again.
        unsafe {
            let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let map = libc::mmap(std::ptr::null_mut(), pages * size, access, flags, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            // One huge page would be one fault.
            libc::madvise(map, pages * size, libc::MADV_NOHUGEPAGE);
            (0..pages).for_each(|page| map.cast::<u8>().add(page * size).write_volatile(1));
        }
    }

    /// Reports what is missing. That is a failure if the environment has `PERCID_TRACE=require`.
    fn skip(missing: &str) {
        percid_skips::not_checked("counters of a program", missing);
        assert!(std::env::var("PERCID_TRACE").as_deref() != Ok("require"), "{missing}");
    }

    fn counters(names: &[&str]) -> Vec<Counter> {
        names.iter().map(|name| Counter::parse(name).expect("a name")).collect()
    }

    /// Records the program, if that is permitted here.
    fn recorded(pages: usize, backend: Backend) -> Option<Trace> {
        let this = std::env::current_exe().expect("this program").into_os_string();
        let words = ["env".into(), OsString::from(format!("{PAGES}={pages}")), this];
        let arguments = ["--exact", "counters::live::program", "--quiet"].map(OsString::from);
        let mut options =
            Options::new(Target::Command(words.into_iter().chain(arguments).collect()));
        options.backend = Some(backend);
        options.limit = Some(Duration::from_secs(600));
        options.counters = counters(&["page-faults", "task-clock", "context-switches"]);
        match record(&options, &AtomicBool::new(false), |_| {}) {
            Ok(recorded) => Some(recorded.trace),
            Err(refusal @ (Refusal::NotPermitted(_) | Refusal::NoCounters(_))) => {
                skip(&refusal.to_string());
                None
            }
            Err(refusal) => panic!("{refusal}"),
        }
    }

    /// The counts of the thread that touched most pages, turn by turn.
    fn turns_of(trace: &Trace) -> Vec<Counted> {
        let mut sums: HashMap<Tid, u64> = HashMap::new();
        for turn in &trace.counted {
            *sums.entry(turn.thread).or_default() += turn.counts[0];
        }
        let (&most, _) = sums.iter().max_by_key(|(_, sum)| **sum).expect("turns");
        trace.counted.iter().filter(|turn| turn.thread == most).copied().collect()
    }

    #[test]
    fn page_faults_of_a_turn_are_the_pages_that_it_touched() {
        for backend in [Backend::Tracefs, Backend::PerfEvents] {
            let Some(trace) = recorded(61, backend) else { continue };
            assert_eq!(trace.origin.counters, ["page-faults", "task-clock", "context-switches"]);
            let turns = turns_of(&trace);
            let same = turns.iter().filter(|turn| (61..64).contains(&turn.counts[0])).count();
            // A thread that is preempted in the middle touches the rest in its next turn. A turn
            // takes about a hundredth of a time slice. Even if one turn in ten were interrupted,
            // half of them would be so once in 10^9 runs.
            assert!(same >= ROUNDS / 2, "{same} of {ROUNDS} turns by {backend}: {turns:?}");
            // The counts of a turn whose beginning was not recorded are not known.
            let thread = turns[0].thread;
            let ends =
                |event: &&Event| matches!(event.what, What::Switch { prev, .. } if prev == thread);
            let all = trace.events.iter().filter(ends).count();
            let uncounted = all.saturating_sub(turns.len());
            assert!(uncounted <= all / 4, "{uncounted} of {all} by {backend}");
            let sum: u64 = turns.iter().map(|turn| turn.counts[0]).sum();
            let least = 61 * (ROUNDS - uncounted) as u64;
            assert!(
                (least..61 * ROUNDS as u64 + 400).contains(&sum),
                "{sum}, {uncounted} by {backend}"
            );
            let odd: Vec<_> = turns.iter().filter(|turn| turn.counts[2] != 1).collect();
            assert!(odd.is_empty(), "each ends with a switch: {odd:?}");
            // An interruption at the end of a turn is in one of the two values. It does not happen
            // in every second turn.
            let mut clocks: Vec<f64> =
                turns.iter().map(|turn| turn.counts[1] as f64 / turn.ran as f64).collect();
            clocks.sort_by(f64::total_cmp);
            let clock = clocks[clocks.len() / 2];
            assert!((0.8..1.25).contains(&clock), "{clocks:?} by {backend}");
            // About every turn that the schedule has.
            let found = ask(&trace);
            let counted: u64 = found.processes.iter().map(|(_, all)| all.turns).sum();
            assert!(
                counted.abs_diff(found.switches) * 5 <= counted,
                "{counted} of {} by {backend}",
                found.switches
            );
            // The control: a program that touches none.
            let none = recorded(0, backend).expect("as before");
            let sum: u64 = turns_of(&none).iter().map(|turn| turn.counts[0]).sum();
            assert!(sum < 61 * ROUNDS as u64 / 2, "{sum} by {backend}");
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused_with_what_can() {
        let mut options = Options::new(Target::System);
        options.limit = Some(Duration::from_millis(50));
        // No processor has that many sorts of events.
        options.counters = counters(&["task-clock", "rffffffffffffffff"]);
        let refused =
            record(&options, &AtomicBool::new(false), |_| {}).expect_err("no such counter");
        let said = refused.to_string();
        assert!(matches!(refused, Refusal::NoCounters(_)), "{said}");
        assert_eq!(refused.exit_code(), 1);
        if !said.contains("CAP_PERFMON") && !said.contains("no perf events") {
            assert!(said.contains("`rffffffffffffffff`"), "{said}");
            assert!(
                said.contains("what can be counted here: ")
                    && said.contains("task-clock, page-faults"),
                "{said}"
            );
        }
        let nine = ["task-clock"; 9];
        options.counters = counters(&nine);
        let refused = record(&options, &AtomicBool::new(false), |_| {}).expect_err("too many");
        assert!(refused.to_string().contains("9 counters, expected at most 8"), "{refused}");
    }
}
