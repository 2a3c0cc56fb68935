//! More counters than the arena has room for, and no arena at all: everything still counts.

use percid::ring::AppendError;
use percid::{Counter, Histogram, Local, Overflow, Pool, Ring, Source, Stack};
use percid_metrics::{Description, Format, Registry};

use crate::errno;
use crate::options::Options;
use crate::verdict::Verdict;

/// More than fit one extent: 2^21 words. The others are taken by rings.
const COUNTERS: usize = (1 << 21) + 1000;

pub(crate) fn run(options: &Options) -> Verdict {
    if options.confined {
        confine_address_space()?;
        first_of_all_a_ring()?;
    }
    // The largest there are, without touching their memory: each takes an extent.
    let ring = || Ring::with_source(Source::Atomic, Ring::MAX_BYTES, Overflow::DropNewest);
    let rings: Vec<Ring> = std::iter::from_fn(|| ring().ok()).collect();
    let mut counters: Vec<Counter> = Vec::with_capacity(COUNTERS);
    counters.resize_with(COUNTERS, Counter::new);
    for round in 1..=2 {
        counters.iter().for_each(|counter| counter.add(round));
    }
    let wrong = counters.iter().filter(|counter| counter.sum() != 3).count();
    let refused = Source::Atomic.prepare().and_then(|()| Counter::with_source(Source::Atomic));
    let full = refused.err().map(|error| error.to_string());
    let structures = without_memory();
    // Memory that was freed is available again, also in smaller pieces: that of the rings as
    // counters.
    let fitted = counters.iter().filter(|counter| counter.per_id().next().is_some()).count();
    drop(rings);
    let again = Counter::with_source(Source::Atomic).is_ok();
    let figures = format!(
        "counters={COUNTERS} fitted={fitted} wrong={wrong} full={full:?} structures={structures:?} \
         again={again}"
    );
    let used = options.confined || fitted > COUNTERS / 2;
    let told = full.is_some() && structures.is_ok();
    let right = wrong == 0 && used && told && again != options.confined;
    if right { Ok(figures) } else { Err(figures) }
}

/// Appends to a ring while the library's first call to the kernel is refused.
fn first_of_all_a_ring() -> Result<(), String> {
    let ring = Ring::new(1 << 20, Overflow::OverwriteOldest);
    match errno::kept(|| ring.append(b"lost")) {
        Some(Err(AppendError::NoMemory)) => Ok(()),
        Some(other) => Err(format!("a ring without memory says {other:?}")),
        None => Err("a ring without memory changes errno".to_owned()),
    }
}

/// Checks structures without memory: no loss may remain unreported.
fn without_memory() -> Result<(), &'static str> {
    let told = |right: bool, what| if right { Ok(()) } else { Err(what) };
    let histogram = Histogram::new();
    histogram.record_many(5, 3);
    told(histogram.unrecorded() + histogram.snapshot().count() == 3, "histogram")?;
    // A stack's part and its shared list take blocks.
    let stack = Stack::new(100_000);
    told(stack.push(1) == Err(1) && stack.pop().is_none(), "stack")?;
    let pool = Pool::new(|| 7, 100_000);
    told(*pool.get() == 7 && pool.drain() == 0, "pool")?;
    let ring = Ring::new(1 << 20, Overflow::OverwriteOldest);
    told(ring.append(b"lost") == Err(AppendError::NoMemory) && ring.lost() == 1, "ring")?;
    let local = Local::new(|| 0);
    local.with(|value| *value += 1);
    let mut sum = 0;
    local.for_each(|value| sum += *value);
    told(sum == 1, "local")?;
    told(values_on_a_page().unwrap_or(0) == 3, "page")
}

/// Returns the number of three values that a page of metrics contains or reports as missing.
fn values_on_a_page() -> Option<u64> {
    let registry = Registry::new();
    let waits = registry.register::<percid_metrics::Histogram>(Description::new("waits")).ok()?;
    let waits = waits.get::<&str>([]).ok()?;
    (0..3).for_each(|value| waits.observe(f64::from(value)));
    let page = registry.render(Format::Text);
    let value = |name: &str| -> u64 {
        let mut lines = page.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        lines.next().and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    Some(value("waits_count") + value("percid_unrecorded_values_total"))
}

/// Leaves room for the counters' handles, but for no reservation of the arena.
fn confine_address_space() -> Result<(), String> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages = statm.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
    let now = pages.ok_or("no size in statm")? * 4096;
    let limit = now + 30 * (1 << 20);
    let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the structure is valid.
    match unsafe { libc::setrlimit(libc::RLIMIT_AS, &limits) } {
        0 => Ok(()),
        _ => Err("cannot limit the address space".to_owned()),
    }
}
