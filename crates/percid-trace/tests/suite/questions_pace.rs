//! Ten million events through every question: how long it takes, and in how much memory. Only an
//! optimised build says something about that (`cargo test --release`); others ask fewer events.

use crate::allocator;
use crate::schedule;

use std::fs;
use std::time::{Duration, Instant};

use percid_sim::machine::Machine;
use percid_sim::run_control::RunControl;
use percid_trace::questions::{
    LatencySettings, LossesSettings, MigrationsSettings, PictureSettings, PreemptionsSettings,
    UsageSettings, latency, losses, migrations, picture, preemptions, usage,
};
use percid_trace::{Origin, Trace};

const EVENTS: usize = if cfg!(debug_assertions) { 200_000 } else { 10_000_000 };
const SECONDS: u64 = 10;
const BYTES: usize = 1 << 30;

/// Returns the system's name for the processor.
fn processor() -> String {
    let described = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = described.lines();
    let name = lines.find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| "of unknown name".to_owned(), |(_, name)| name.to_owned())
}

/// Asks, prints what it took, and judges it. The trace is part of the memory.
fn pace<A>(question: &str, trace: &Trace, ask: impl FnOnce() -> A) -> A {
    let began = Instant::now();
    let (answer, bytes) = allocator::measured(ask);
    let took = began.elapsed();
    let held = trace.events.len() * size_of_val(&trace.events[0]);
    println!("{question}: {:.2} s, {} MiB beside the trace", took.as_secs_f64(), bytes >> 20);
    // Time limits apply only in release builds: in other test runs, other programs may use the
    // CPUs.
    let is_judged = cfg!(not(debug_assertions));
    assert!(!is_judged || took < Duration::from_secs(SECONDS), "{question}: {took:?}");
    assert!(held + bytes < BYTES, "{question}: {held} and {bytes} bytes");
    answer
}

#[test]
fn every_question_is_answered_in_seconds() {
    let trace = Trace { origin: Origin::default(), ..schedule::plausible(1, EVENTS) };
    println!("{} events, processor {}", trace.events.len(), processor());
    let control = RunControl::default();
    let settings = LatencySettings { worst: 10, ..LatencySettings::default() };
    let waits = pace("latency", &trace, || latency(&trace, &settings, &control));
    let counted: u64 = waits.threads.iter().map(|(_, waits)| waits.run_queue.count).sum();
    assert!(counted > EVENTS as u64 / 20, "it did something: {counted}");
    let settings = PreemptionsSettings::default();
    let delays = pace("preemptions", &trace, || preemptions(&trace, &settings, &control));
    assert!(delays.waited_ns >= delays.unattributed_ns && !delays.delays.is_empty());
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let settings = MigrationsSettings::default();
    let moves = pace("migrations", &trace, || migrations(&trace, &machine, &settings, &control));
    assert!(moves.is_ok_and(|moves| !moves.threads.is_empty()));
    let settings = UsageSettings { slices: 10, ..UsageSettings::default() };
    let used = pace("usage", &trace, || usage(&trace, &settings, &control));
    assert!(!used.cells.is_empty());
    let settings = LossesSettings::default();
    let lost = pace("losses", &trace, || losses(&trace, &settings, &control));
    assert!(lost.all.iter().any(|loss| loss.lost_ns > 0));
    let settings = PictureSettings { spans: 10_000, ..PictureSettings::default() };
    let drawn = pace("picture", &trace, || picture(&trace, &settings, &control));
    assert!((1000..=10_000).contains(&drawn.spans.len()), "{}", drawn.spans.len());
}
