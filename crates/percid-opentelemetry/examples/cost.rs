//! The cost of an update with percid's provider and with the SDK's. Measured with one thread, with
//! two that are pinned to a CPU each (on Linux), and with eight.
//!
//! Providers take turns, so that other load of the machine affects both. The values are nanoseconds
//! of CPU time for an update: the minimum and the median of the rounds. All threads update the same
//! series.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use percid_opentelemetry::PercidMeterProvider;

const ROUNDS: usize = 31;
/// Number of updates of each thread in a round.
const UPDATES: u32 = 100_000;

type Update = Box<dyn Fn() + Send + Sync>;

/// The number of threads, and `true` if each is pinned to a CPU.
const THREADS: [(usize, bool); 3] = [(1, false), (2, true), (8, false)];

fn main() {
    let percid = PercidMeterProvider::builder().build();
    // Without a reader the SDK's instruments do nothing.
    let reader = PeriodicReader::builder(InMemoryMetricExporter::default()).build();
    let sdk = SdkMeterProvider::builder().with_reader(reader).build();
    println!("ns for an update, least and median of {ROUNDS}     percid              SDK");
    for ((name, percid), (_, sdk)) in updates(&percid).into_iter().zip(updates(&sdk)) {
        for (threads, is_pinned) in THREADS {
            let mut rounds = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                for (update, of) in [&percid, &sdk].into_iter().zip(&mut rounds) {
                    of.push(round(update, threads, is_pinned));
                }
            }
            let [percid, sdk] = rounds.map(least_and_median);
            let threads = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
            let pinned = if is_pinned { ", pinned" } else { "" };
            println!("{name:25}{:20}{percid}{sdk}", threads + pinned);
        }
    }
}

/// Returns the same updates for every provider.
fn updates(provider: &impl MeterProvider) -> Vec<(&'static str, Update)> {
    let meter = provider.meter("cost");
    let attributes = || [KeyValue::new("path", "/index")];
    let counter = meter.u64_counter("counter").build();
    let histogram = meter.f64_histogram("histogram").build();
    let (bound_counter, bound_histogram) =
        (counter.bind(&attributes()), histogram.bind(&attributes()));
    let (of_counter, of_histogram) = (attributes(), attributes());
    vec![
        ("counter, bound", Box::new(move || bound_counter.add(1))),
        ("counter, 1 attribute", Box::new(move || counter.add(1, black_box(&of_counter)))),
        ("histogram, bound", Box::new(move || bound_histogram.record(black_box(42.0)))),
        (
            "histogram, 1 attribute",
            Box::new(move || histogram.record(black_box(42.0), black_box(&of_histogram))),
        ),
    ]
}

/// Returns the nanoseconds of CPU time for an update.
fn round(update: &Update, threads: usize, is_pinned: bool) -> f64 {
    let barrier = Barrier::new(threads);
    let run = |thread| {
        if is_pinned {
            pin(thread);
        }
        (0..1000).for_each(|_| update());
        barrier.wait();
        let start = Instant::now();
        (0..UPDATES).for_each(|_| update());
        (start, Instant::now())
    };
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let start = times.iter().map(|(start, _)| start).min().expect("a thread");
    let end = times.iter().map(|(_, end)| end).max().expect("a thread");
    let at_once = threads.min(std::thread::available_parallelism().map_or(1, usize::from));
    let of_cpus = end.duration_since(*start).as_nanos() as f64 * at_once as f64;
    of_cpus / (threads as f64 * f64::from(UPDATES))
}

#[cfg(target_os = "linux")]
fn pin(cpu: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None).expect("the CPUs of this thread");
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let mut own = CpuSet::new();
    own.set(cpus.nth(cpu).expect("a CPU for each thread"));
    sched_setaffinity(None, &own).expect("this CPU");
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

fn least_and_median(mut rounds: Vec<f64>) -> String {
    rounds.sort_by(f64::total_cmp);
    format!("{:8.1} {:8.1}  ", rounds[0], rounds[ROUNDS / 2])
}
