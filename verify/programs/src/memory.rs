//! What ten thousand counters cost.

use percid::Counter;

use crate::options::Options;
use crate::{Verdict, pinning};

const COUNTERS: usize = 10_000;

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    source.available().map_err(|error| error.to_string())?;
    // One counter makes what is constant; it is measured apart.
    let before_all = resident_kib()?;
    let first = Counter::with_source(source).map_err(|error| error.to_string())?;
    first.add(1);
    let mut counters = Vec::with_capacity(COUNTERS);
    counters.extend((0..COUNTERS).map(|_| Counter::with_source(source)));
    let counters: Vec<Counter> =
        counters.into_iter().collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    drop_allocator_slack();
    let before = resident_kib()?;
    let cpus = pinning::allowed();
    count_on_every_cpu(&counters, &cpus);
    let ids = source.ids_seen() as usize;
    let after = resident_kib()?;
    let sum: i64 = counters.iter().map(Counter::sum).sum();
    let summed = resident_kib()?;
    let handles = COUNTERS * size_of::<Counter>();
    let bytes = (summed - before) * 1024 + handles;
    let limit = 16 * COUNTERS * ids + 64 * 1024;
    let figures = format!(
        "source={source} counters={COUNTERS} ids={ids} handles={handles} B, arena={} B, sum touched {} B, \
         first counter {} KiB, total={bytes} B of {limit} B allowed, {:.2} B per counter and ID, sum={sum}",
        (after - before) * 1024,
        (summed - after) * 1024,
        before.saturating_sub(before_all),
        bytes as f64 / (COUNTERS * ids) as f64,
    );
    let right = bytes <= limit && sum == (COUNTERS * cpus.len()) as i64 && summed == after;
    if right { Ok(figures) } else { Err(figures) }
}

/// Every CPU counts in all counters at the same time, so that there are as many IDs as CPUs.
fn count_on_every_cpu(counters: &[Counter], cpus: &[u32]) {
    let start = std::sync::Barrier::new(cpus.len());
    std::thread::scope(|scope| {
        for &cpu in cpus {
            let start = &start;
            scope.spawn(move || {
                pinning::restrict(0, &[cpu]);
                start.wait();
                counters.iter().for_each(|counter| counter.add(1));
            });
        }
    });
}

/// Resident anonymous memory of this process in KiB, exact to the page.
///
/// Linux 6.1 was seen to leave memory out of a summary while threads that had just ended gave theirs back:
/// two equal readings count.
fn resident_kib() -> Result<usize, String> {
    loop {
        let first = read_resident_kib()?;
        std::thread::sleep(std::time::Duration::from_millis(5));
        if first == read_resident_kib()? {
            return Ok(first);
        }
    }
}

fn read_resident_kib() -> Result<usize, String> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(|e| e.to_string())?;
    let line = text.lines().find(|line| line.starts_with("Anonymous:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|n| n.parse().ok());
    number.ok_or_else(|| "no line Anonymous: in smaps_rollup".to_owned())
}

fn drop_allocator_slack() {
    // SAFETY: returns free memory of the heap to the kernel; no pointer of ours is affected.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
