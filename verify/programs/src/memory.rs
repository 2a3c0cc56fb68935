//! The memory of ten thousand counters.

use percid::Counter;

use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

const COUNTERS: usize = 10_000;

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    // The memory for reading the value itself is allocated before anything is measured.
    resident_kib()?;
    let at_first = resident_kib()?;
    source.prepare().map_err(|error| error.to_string())?;
    let first = Counter::with_source(source).map_err(|error| error.to_string())?;
    first.add(1);
    let constant = (resident_kib()? - at_first) * 1024;

    let counters: Vec<_> = (0..COUNTERS).map(|_| Counter::with_source(source)).collect();
    let counters: Vec<Counter> =
        counters.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let cpus = pinning::allowed();
    // The stacks and heaps of the threads are no memory of the counters: they are there from now
    // on.
    count_on_every_cpu(&[], &cpus);
    let before = resident_kib()?;
    count_on_every_cpu(&counters, &cpus);
    drop_allocator_slack();
    let after = resident_kib()?;
    let sum: i64 = counters.iter().map(Counter::sum).sum();
    let summed = resident_kib()?;

    let ids = source.id_count() as usize;
    let handles = COUNTERS * size_of::<Counter>();
    let copies = summed.saturating_sub(before) * 1024;
    let bytes = constant + handles + copies;
    let limit = 16 * COUNTERS * ids + 64 * 1024;
    let figures = format!(
        "source={source} counters={COUNTERS} ids={ids} constant={constant} B, handles={handles} B, \
         copies={copies} B, total={bytes} B of {limit} B allowed, {:.2} B per counter and ID beside \
         the constant, sum touched {} B, sum={sum}",
        (handles + copies) as f64 / (COUNTERS * ids) as f64,
        summed.saturating_sub(after) * 1024,
    );
    let right = bytes <= limit
        && constant <= 64 * 1024
        && sum == (COUNTERS * cpus.len()) as i64
        && summed <= after;
    if right { Ok(figures) } else { Err(figures) }
}

/// Counts on every CPU in all counters at the same time, so that there are as many IDs as CPUs.
pub(crate) fn count_on_every_cpu(counters: &[Counter], cpus: &[u32]) {
    on_every_cpu(cpus, || counters.iter().for_each(|counter| counter.add(1)));
}

/// Runs `work` on every CPU at the same time, so that there are as many IDs as CPUs.
pub(crate) fn on_every_cpu(cpus: &[u32], work: impl Fn() + Sync) {
    let start = std::sync::Barrier::new(cpus.len());
    std::thread::scope(|scope| {
        for &cpu in cpus {
            let (start, work) = (&start, &work);
            // Small enough for the C library to keep all of them for the next threads.
            let thread = std::thread::Builder::new().stack_size(64 * 1024);
            let spawned = thread.spawn_scoped(scope, move || {
                pinning::restrict(0, &[cpu]);
                start.wait();
                work();
            });
            spawned.expect("a thread for every CPU");
        }
    });
}

/// Returns Resident anonymous memory of this process in KiB, exact to the page.
///
/// Linux 6.1 sometimes omits memory from a summary while threads that have just ended free theirs:
/// two equal readings count.
pub(crate) fn resident_kib() -> Result<usize, String> {
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

pub(crate) fn drop_allocator_slack() {
    // SAFETY: returns free memory of the heap to the kernel; no pointer of ours is affected.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
