//! Tests that facts which a recording does not contain stay unknown after any conversion.

use percid_sim::random::Random;
use percid_sim::run_control::RunControl;
use percid_trace::event::{Event, IDLE, Tid, What};
use percid_trace::quality::{Quality, QualityLevel};
use percid_trace::questions::{
    Latency, LatencySettings, LossesSettings, PreemptionsSettings, SliceUsage, Usage,
    UsageSettings, latency, losses, preemptions, usage,
};
use percid_trace::read::read_bytes;
use percid_trace::trace::{Coverage, Sampling, Trace};
use percid_trace::window::Window;
use percid_trace::{gaps, parquet, perfetto};

use crate::fixture::bytes;
use crate::schedule;

fn fixture(name: &str) -> Trace {
    read_bytes(&bytes(name)).expect("a recording")
}

fn waits(trace: &Trace) -> Latency {
    let settings = LatencySettings { worst: 5, ..LatencySettings::default() };
    latency(trace, &settings, &RunControl::default())
}

fn cpus(trace: &Trace) -> Usage {
    let settings = UsageSettings { slices: 1, ..UsageSettings::default() };
    usage(trace, &settings, &RunControl::default())
}

/// Returns a trace converted to each format that can be written, and read again.
fn converted(trace: &Trace) -> [(&'static str, Trace); 2] {
    let (mut packets, mut table) = (Vec::new(), Vec::new());
    perfetto::write(trace, &[], &mut packets).expect("memory takes everything");
    parquet::write(trace, &mut table).expect("memory takes everything");
    let read = |file: Vec<u8>| read_bytes(&file).expect("our own file");
    [("Perfetto", read(packets)), ("Parquet", read(table))]
}

fn assert_same(name: &str, trace: &Trace) {
    let (waited, used) = (waits(trace), cpus(trace));
    let mut all = Vec::from(converted(trace));
    // Conversions from each format to each.
    let twice: Vec<_> = all.iter().flat_map(|(_, once)| converted(once)).collect();
    all.extend(twice);
    for (format, back) in all {
        let judged = [&back, trace].map(Quality::from_trace);
        assert_eq!(judged[0], judged[1], "{name} in {format}");
        assert_eq!(back.origin.coverage, trace.origin.coverage, "{name} in {format}");
        let found = waits(&back);
        assert_eq!((found.threads, found.worst), (waited.threads.clone(), waited.worst.clone()));
        let found = cpus(&back);
        assert_eq!((found.cpus, found.cells), (used.cpus.clone(), used.cells.clone()));
    }
}

#[test]
fn a_conversion_keeps_the_grade_the_doubts_and_the_answers() {
    for name in ["pool_inferred.parquet", "command_foreign.parquet", "tracefs.txt", "forks.data"] {
        assert_same(name, &fixture(name));
    }
    let mut random = Random::new(33);
    for seed in 0..12 {
        let mut trace = schedule::plausible(seed, 2_000);
        let mut doubted = || random.below(2) == 0;
        trace.origin.lost = u64::from(doubted());
        trace.origin.coverage = Coverage {
            sampling: doubted().then_some(Sampling::Frequency(99)),
            away_only: doubted(),
            not_inherited: doubted(),
            some_cpus: doubted(),
            filtered: doubted(),
            cut_off: doubted(),
            inferred: 0,
            unread: 7 * u64::from(doubted()),
            no_states: doubted(),
        };
        trace.origin.late_cpus = if doubted() { vec![0, 2] } else { Vec::new() };
        if doubted() {
            // The switches from idle are lost on one CPU, and inferred.
            let from_idle = |what| matches!(what, What::Switch { prev: IDLE, .. });
            trace.events.retain(|event| event.cpu != 1 || !from_idle(event.what));
            gaps::close(&mut trace);
        }
        assert_same(&format!("schedule {seed}"), &trace);
    }
}

#[test]
fn inferred_switches_are_inferred_for_perfetto_too() {
    let trace = fixture("pool_inferred.parquet");
    let [(_, back), _] = converted(&trace);
    let judged = Quality::from_trace(&back);
    assert_eq!((judged.level, judged.inferred), (QualityLevel::Limited, 380), "{judged}");
    let counts = [&trace, &back].map(|trace| {
        let found = waits(trace);
        found.threads.iter().map(|(_, thread)| thread.run_queue.count).sum::<u64>()
    });
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn a_recording_of_a_command_tells_of_its_threads_only() {
    let trace = fixture("command_foreign.parquet");
    assert!(trace.origin.coverage.filtered, "it shows, though older recorders did not note it");
    let judged = Quality::from_trace(&trace);
    assert_eq!(judged.level, QualityLevel::Limited, "{judged}");
    assert!(judged.to_string().contains("was not seen"), "{judged}");

    let own = |thread| {
        trace.events.iter().any(|event| match event.what {
            What::Member { thread: known, .. } | What::Fork { child: known, .. } => known == thread,
            _ => false,
        })
    };
    let found = waits(&trace);
    assert!(!found.threads.is_empty());
    for (thread, _) in &found.threads {
        let thread = found.known.get(*thread).tid;
        assert!(own(thread), "thread {thread} is another program's");
    }

    let found = cpus(&trace);
    assert!(!found.cells.is_empty());
    assert!(found.cells.iter().all(|cell| own(found.known.get(cell.thread).tid)));
    let idle: u64 = found.cpus.iter().flat_map(|cpu| &cpu.slices).map(|part| part.idle_ns).sum();
    assert_eq!(idle, 0, "no CPU is known to idle");

    let settings = LossesSettings::default();
    assert_eq!(losses(&trace, &settings, &RunControl::default()).all, []);
    let settings = PreemptionsSettings::default();
    let delays = preemptions(&trace, &settings, &RunControl::default());
    assert_eq!(delays.unattributed_ns, delays.waited_ns, "nobody is known to be in the way");
    assert!(delays.waited_ns > 0);

    let mut unfiltered = trace.clone();
    unfiltered.origin.coverage.filtered = false;
    let found = cpus(&unfiltered);
    let mut threads = found.cells.iter().map(|cell| found.known.get(cell.thread).tid);
    assert!(threads.any(|thread| !own(thread)), "the control: as if all had been recorded");
}

/// The fixture was recorded with `set_event_pid`, while a loop (29744) and one that starts `sleep`
/// (29745) ran at the same time. The text does not contain this, but its breaks show it.
#[test]
fn a_text_of_some_threads_shows_by_its_breaks() {
    let trace = fixture("set-event-pid.txt.gz");
    assert!(trace.origin.coverage.filtered);
    let is_other = |thread| [29744, 29745].contains(&thread);
    let ran = |trace: &Trace| -> Vec<Tid> {
        let found = cpus(trace);
        found.cells.iter().map(|cell| found.known.get(cell.thread).tid).collect()
    };
    assert!(ran(&trace).contains(&29746) && !ran(&trace).into_iter().any(is_other));
    let found = waits(&trace);
    assert!(!found.threads.iter().any(|(thread, _)| is_other(found.known.get(*thread).tid)));
    let mut all = trace.clone();
    all.origin.coverage.filtered = false;
    assert!(ran(&all).into_iter().any(is_other), "the control: as if all had been recorded");
}

/// The events of CPU 0 in the first half are missing.
#[test]
fn a_cpu_whose_events_begin_late_was_not_seen_until_then() {
    let whole = fixture("tracefs.txt");
    assert_eq!(whole.origin.late_cpus, [0; 0]);
    let text = String::from_utf8(bytes("tracefs.txt")).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    // The events begin with a switch from idle, as if CPU 0 had idled until then.
    let is_of_0 = |line: &str| line.contains("[000]");
    let from_idle = |line: &str| is_of_0(line) && line.contains("prev_pid=0 ");
    let half = lines.len() / 2;
    let begin = half + lines[half..].iter().position(|line| from_idle(line)).expect("a switch");
    let (first, second) = lines.split_at(begin);
    let kept = first.iter().filter(|line| !is_of_0(line)).chain(second);
    let kept: Vec<&str> = kept.copied().collect();
    let said = format!("entries-written: {}/396", 396 + kept.len() - lines.len());
    let text = kept.join("\n").replace("entries-written: 396/396", &said);
    let late = read_bytes(text.as_bytes()).expect("a text");
    assert_eq!(late.origin.late_cpus, [0]);
    let judged = Quality::from_trace(&late);
    assert!(judged.level < QualityLevel::Good);
    assert!(judged.to_string().contains("CPU 0: the events begin late"), "{judged}");
    assert_same("a late text", &late);

    let begin = late.events[0].time;
    let switches = |event: &&Event| event.cpu == 0 && matches!(event.what, What::Switch { .. });
    let first = late.events.iter().find(switches).map(|event| event.time - begin);
    let told = |trace: &Trace| {
        let window = Window { from: 0, to: first.expect("a switch") + 1 };
        let settings = UsageSettings { window, slices: 1, ..UsageSettings::default() };
        let found = usage(trace, &settings, &RunControl::default());
        let SliceUsage { busy_ns, idle_ns, .. } = found.cpus[0].slices[0];
        busy_ns + idle_ns
    };
    assert_eq!(told(&late), 1, "neither a thread's nor idle until the switch");
    let mut unknown = late.clone();
    unknown.origin.late_cpus.clear();
    assert!(told(&unknown) > 1000, "the control");
    let longest = |trace: &Trace| waits(trace).worst.iter().map(|wait| wait.ns).max();
    assert!(longest(&late) <= longest(&whole), "no wait is made up");
}
