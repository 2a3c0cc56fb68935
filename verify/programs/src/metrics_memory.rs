//! The memory of ten thousand series of metrics that every CPU has updated, on a machine that may
//! have `--possible` CPUs.

use std::sync::{Mutex, PoisonError};

use percid::testing;
use percid_metrics::histogram::{DEFAULT_SCHEMA, Limits};
use percid_metrics::{Counter, Histogram};

use crate::memory::{drop_allocator_slack, on_every_cpu, resident_kib};
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

const SERIES: usize = 10_000;
const LIMITS: [f64; 10] = [1e2, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 6e5, 9e5];

/// Bytes for each series: those of the handle and what belongs to it, and those for each ID.
struct Allowed {
    once: usize,
    for_each_id: usize,
}

pub(crate) fn run(options: &Options) -> Verdict {
    testing::pretend_possible_cpus(options.possible);
    let source = percid::init().source;
    let cpus = pinning::allowed();
    // The stacks and heaps of threads, and percid's first pages, are no memory of the series.
    let first = Counter::default();
    on_every_cpu(&cpus, || first.inc());
    let limits = Limits::new(LIMITS);
    let native = || Histogram::native(DEFAULT_SCHEMA).expect("a schema");
    let counters = measure(&cpus, Counter::default, Counter::inc)?;
    let classic = measure(&cpus, || Histogram::with_limits(&limits), observe)?;
    let natives = measure(&cpus, native, observe)?;
    let ids = source.id_count() as usize;
    // Words, of which an ID's memory holds as many and the shared one too; what belongs to the handle
    // of a histogram; and the pages of IDs that have only begun.
    let allowed = [(40, 12), (184, 128), (256, 1024)]
        .map(|(once, for_each_id)| Allowed { once, for_each_id })
        .map(|it| it.once + it.for_each_id * (ids + 1));
    let figures = format!(
        "source={source} possible={} CPUs={} ids={ids}, bytes for each of {SERIES} series: counter \
         {counters:.0} of {}, histogram of {} limits {classic:.0} of {}, native histogram {natives:.0} of {}",
        options.possible,
        cpus.len(),
        allowed[0],
        LIMITS.len(),
        allowed[1],
        allowed[2],
    );
    let all = [counters, classic, natives];
    let right = all.iter().zip(allowed).all(|(bytes, allowed)| *bytes <= allowed as f64);
    if right { Ok(figures) } else { Err(figures) }
}

/// Values of four octaves.
fn observe(histogram: &Histogram) {
    [1100.0, 2300.0, 5000.0, 9000.0].into_iter().for_each(|value| histogram.observe(value));
}

/// Bytes for each.
fn measure<T: Sync>(
    cpus: &[u32],
    new: impl Fn() -> T,
    update: impl Fn(&T) + Sync,
) -> Result<f64, String> {
    let mut all = Vec::with_capacity(SERIES);
    drop_allocator_slack();
    let before = resident_kib()?;
    all.extend((0..SERIES).map(|_| new()));
    // One after the other, while all live: emulated CPUs take long to wait for each other.
    let turn = Mutex::new(());
    on_every_cpu(cpus, || {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(&update);
    });
    let bytes = (resident_kib()? - before) * 1024;
    // Whatever was made is kept, so that the next kind finds none of its memory.
    std::mem::forget(all);
    Ok(bytes as f64 / SERIES as f64)
}
