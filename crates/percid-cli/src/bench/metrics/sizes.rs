//! Memory of 10,000 series, and the time and size of their exposition page.

use std::hint::black_box;
use std::time::Instant;

use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::PrometheusBuilder as PeerBuilder;
use percid_command::text_table::{Align, TextTable};
use percid_metrics::histogram::{DEFAULT_SCHEMA, Limits};
use percid_metrics::{Histogram, PrometheusBuilder};
use serde::Serialize;

use crate::bench::cpu;

const SERIES: usize = 10_000;
const LIMITS: [f64; 10] = [1e2, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 6e5, 9e5];
static METADATA: Metadata<'static> = Metadata::new("percid", Level::INFO, None);

/// Measurements of one kind of series.
#[derive(Debug, Serialize)]
pub(crate) struct Size {
    series: &'static str,
    /// Number of CPUs that have updated them.
    cpus: usize,
    /// Memory of the process per series, for 10,000 series that all these CPUs have updated and to
    /// which the program has handles. The memory of as many keys is subtracted if there are keys.
    bytes_per_series: f64,
    /// Milliseconds to make their page, and the size of the page.
    page_ms: Option<f64>,
    page_bytes: Option<usize>,
}

/// Numbers of CPUs with which all kinds are measured, limited to the available ones.
const CPUS: [usize; 2] = [2, 16];

/// Measures all kinds.
pub(crate) fn measure(cpus: &[u32]) -> Vec<Size> {
    let mut counts = CPUS.map(|count| count.min(cpus.len())).to_vec();
    counts.dedup();
    counts.into_iter().flat_map(|count| measure_on(&cpus[..count])).collect()
}

fn measure_on(cpus: &[u32]) -> Vec<Size> {
    let ours = || PrometheusBuilder::new().set_buckets(&LIMITS).expect("limits in order");
    let theirs = || PeerBuilder::new().set_buckets(&LIMITS).expect("limits in order");
    let kinds: [(&str, &dyn Fn() -> Measured); 7] = [
        ("percid::Counter", &|| bare(cpus, percid::Counter::new, |it| it.add(1))),
        ("percid, metrics facade: counters", &|| {
            let recorder = ours().build_recorder();
            let page = recorder.handle();
            of_recorder(
                cpus,
                |key| recorder.register_counter(key, &METADATA),
                count,
                || page.render(),
            )
        }),
        ("percid_metrics::Histogram of 10 limits", &|| {
            let limits = Limits::new(LIMITS);
            bare(cpus, || Histogram::with_limits(&limits), |it| record(|value| it.observe(value)))
        }),
        ("percid_metrics::Histogram, native", &|| {
            let new = || Histogram::native(DEFAULT_SCHEMA).expect("a schema");
            bare(cpus, new, |it| record(|value| it.observe(value)))
        }),
        ("percid, metrics facade: histograms of 10 limits", &|| {
            let recorder = ours().build_recorder();
            let page = recorder.handle();
            let new = |key: &Key| recorder.register_histogram(key, &METADATA);
            of_recorder(cpus, new, record_values, || page.render())
        }),
        ("metrics-exporter-prometheus: counters", &|| {
            let recorder = theirs().build_recorder();
            let page = recorder.handle();
            of_recorder(
                cpus,
                |key| recorder.register_counter(key, &METADATA),
                count,
                || page.render(),
            )
        }),
        ("metrics-exporter-prometheus: histograms of 10 limits", &|| {
            let recorder = theirs().build_recorder();
            let page = recorder.handle();
            let new = |key: &Key| recorder.register_histogram(key, &METADATA);
            of_recorder(cpus, new, record_values, || page.render())
        }),
    ];
    let of_kind = |(series, measure): (&'static str, &dyn Fn() -> Measured)| {
        let [bytes, page_ms, page_bytes] = in_a_child(cpus, measure)?;
        let has_page = page_bytes > 0.0;
        Some(Size {
            series,
            cpus: cpus.len(),
            bytes_per_series: bytes / SERIES as f64,
            page_ms: has_page.then_some(page_ms),
            page_bytes: has_page.then_some(page_bytes as usize),
        })
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// Bytes per series, milliseconds for the page, and bytes of the page.
type Measured = [f64; 3];

/// Measures series without a recorder.
fn bare<T: Sync>(cpus: &[u32], new: impl Fn() -> T, update: impl Fn(&T) + Sync) -> Measured {
    let mut all = Vec::with_capacity(SERIES);
    let (bytes, ()) = grows_by(|| {
        all.extend((0..SERIES).map(|_| new()));
        on_each(cpus, || all.iter().for_each(&update));
    });
    [bytes as f64, 0.0, 0.0]
}

/// Measures series of a recorder, to which the program keeps handles.
fn of_recorder<T: Sync>(
    cpus: &[u32],
    new: impl Fn(&Key) -> T,
    update: impl Fn(&T) + Sync,
    render: impl Fn() -> String,
) -> Measured {
    let keys: Vec<Key> = (0..SERIES).map(key).collect();
    let (key_bytes, clones) = grows_by(|| keys.clone());
    let (bytes, handles) = grows_by(|| {
        let all: Vec<T> = keys.iter().map(new).collect();
        on_each(cpus, || all.iter().for_each(&update));
        all
    });
    let (mut best, mut length) = (f64::INFINITY, 0);
    for _ in 0..5 {
        let began = Instant::now();
        length = black_box(render()).len();
        best = best.min(began.elapsed().as_secs_f64() * 1e3);
    }
    drop((handles, clones));
    [bytes.saturating_sub(key_bytes) as f64, best, length as f64]
}

fn count(counter: &metrics::Counter) {
    counter.increment(1);
}

fn record_values(histogram: &metrics::Histogram) {
    record(|value| histogram.record(value));
}

/// Measures in a separate process, in which no freed memory could be reused. `None` if it cannot be
/// started.
#[cfg(target_os = "linux")]
fn in_a_child(cpus: &[u32], measure: &dyn Fn() -> Measured) -> Option<Measured> {
    use std::io::{Read, Write};
    let (mut reader, mut writer) = std::io::pipe().ok()?;
    // SAFETY: the child continues with this thread alone. It may use the C library's allocator, and
    // it prints and reads only by its own pipe.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            drop(reader);
            // SAFETY: the call has no requirements. It returns free memory, so that the next
            // allocations grow the process.
            #[cfg(target_env = "gnu")]
            unsafe {
                libc::malloc_trim(0)
            };
            // Allocate the threads' stacks and percid's first pages before the measurement.
            let first = percid::Counter::new();
            on_each(cpus, || first.add(1));
            let bytes: Vec<u8> = measure().iter().flat_map(|value| value.to_le_bytes()).collect();
            let _ = writer.write_all(&bytes);
            // SAFETY: `_exit` ends the child without running the parent's destructors.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            let mut bytes = [0; 24];
            let read = reader.read_exact(&mut bytes);
            // SAFETY: waits for the child that was started above; a null pointer for the status is
            // allowed.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            read.ok()?;
            let value =
                |at: usize| f64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
            Some([value(0), value(1), value(2)])
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn in_a_child(_: &[u32], _: &dyn Fn() -> Measured) -> Option<Measured> {
    None
}

/// Returns a table of the measurements.
pub(crate) fn table(sizes: &[Size]) -> TextTable {
    let columns = [
        ("10,000 series", Align::Left),
        ("CPUs", Align::Right),
        ("bytes each", Align::Right),
        ("page, ms", Align::Right),
        ("page, kB", Align::Right),
    ];
    let mut table = TextTable::new(columns);
    let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    for size in sizes {
        table.row(vec![
            size.series.to_owned(),
            size.cpus.to_string(),
            format!("{:.0}", size.bytes_per_series),
            cell(size.page_ms),
            cell(size.page_bytes.map(|bytes| bytes as f64 / 1000.0)),
        ]);
    }
    table
}

fn key(number: usize) -> Key {
    Key::from_parts("series", vec![Label::new("number", number.to_string())])
}

/// Records values of four octaves.
fn record(mut observe: impl FnMut(f64)) {
    [1100.0, 2300.0, 5000.0, 9000.0].into_iter().for_each(&mut observe);
}

/// Runs a function on each of these CPUs.
fn on_each(cpus: &[u32], work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for &cpu in cpus {
            let work = &work;
            let pinned = move || {
                // If threads cannot be pinned, they may all run on one CPU.
                let _ = cpu::pin_this_thread(cpu);
                work();
            };
            let _ = scope.spawn(pinned).join();
        }
    });
}

/// Returns the growth of the process in bytes while a value is made, and the value.
fn grows_by<T>(make: impl FnOnce() -> T) -> (usize, T) {
    let before = resident();
    let made = make();
    (resident().saturating_sub(before), made)
}

/// Returns the resident memory of the process in bytes; 0 if the system does not report it.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0usize) * 4096
}
