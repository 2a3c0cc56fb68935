//! Memory of ten thousand counters, as accounted by the kernel.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use percid::{Counter, Source};
use serde::Serialize;

use super::cpu::pin_this_thread;
use percid_command::exit::complain;

const COUNTERS: usize = 10_000;

/// The key `memory` of the JSON document. Sizes in bytes.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryReport {
    pub(crate) source: String,
    pub(crate) counters: usize,
    pub(crate) ids: u32,
    /// Size of all handles together.
    pub(crate) handles: usize,
    /// Size of all shards together, measured by the growth of the process.
    pub(crate) copies: usize,
    pub(crate) per_counter_and_id: f64,
}

/// Measures the memory before any other part runs, while the process is small. `None` if the kernel
/// does not report it.
pub(crate) fn measure(cpus: &[u32], source: Source) -> Option<MemoryReport> {
    let counters: Result<Vec<_>, _> = (0..COUNTERS).map(|_| Counter::with_source(source)).collect();
    let counters = counters.inspect_err(|why| complain(format_args!("memory: {why}"))).ok()?;
    // Create the threads' stacks first, because they are not memory of the counters.
    count_on_every_cpu(&counters[..1], cpus);
    let before = resident_kib()?;
    count_on_every_cpu(&counters, cpus);
    let copies = resident_kib()?.saturating_sub(before) * 1024;
    let handles = size_of_val(counters.as_slice());
    let ids = source.id_count();
    let per_counter_and_id = (handles + copies) as f64 / (COUNTERS * ids.max(1) as usize) as f64;
    let source = source.to_string();
    Some(MemoryReport { source, counters: COUNTERS, ids, handles, copies, per_counter_and_id })
}

/// Adds to all counters on every CPU at the same time, so that there are as many IDs as CPUs.
fn count_on_every_cpu(counters: &[Counter], cpus: &[u32]) {
    let start = Barrier::new(cpus.len());
    thread::scope(|scope| {
        for &cpu in cpus {
            let start = &start;
            scope.spawn(move || {
                // If a CPU has just been taken offline, the thread counts on another one.
                let _ = pin_this_thread(cpu);
                start.wait();
                counters.iter().for_each(|counter| counter.add(1));
            });
        }
    });
}

/// Returns the resident anonymous memory of this process. It requires two equal readings, because
/// threads that have just ended still free memory. `None` if no two readings are equal.
pub(super) fn resident_kib() -> Option<usize> {
    const READINGS: usize = 200;
    let mut before = read_resident_kib()?;
    for _ in 0..READINGS {
        thread::sleep(Duration::from_millis(5));
        let now = read_resident_kib()?;
        if now == before {
            return Some(now);
        }
        before = now;
    }
    None
}

fn read_resident_kib() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find(|line| line.starts_with("Anonymous:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
