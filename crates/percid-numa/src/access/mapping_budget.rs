//! How many mappings trapping adds to the process, which can have only so many: where armed grains end and others
//! begin, so do mappings.
//!
//! All trapped regions of the process count together, whatever their balancers, and may add a quarter of what there
//! can be: the rest is the program's, whose own `mmap` would fail. The count follows the bits of the armed grains.
//! Threads that disarm neighbours at once count a few too many or too few, which every pass puts right.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::access::pages::Shared;

/// The share that trapping may add: one part in so many.
const SHARE: i64 = 4;
/// `vm.max_map_count` unless told otherwise.
const USUAL: i64 = 65530;

static ADDED: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(USUAL / SHARE);

/// Asks the kernel how many mappings a process can have. Allocates: not async-signal-safe.
pub(crate) fn measure() {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let limit = limit.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(USUAL);
    MOST.store(limit / SHARE, Relaxed);
}

/// Whether so many more may be added; fewer always may.
pub(crate) fn fits(more: i64) -> bool {
    more <= 0 || ADDED.load(Relaxed) + more <= MOST.load(Relaxed)
}

/// Whether half of what may be added is: time to give rights back before there is no room.
pub(crate) fn is_short() -> bool {
    ADDED.load(Relaxed) > MOST.load(Relaxed) / 2
}

/// A region has so many more.
pub(crate) fn add(shared: &Shared, more: i64) {
    shared.mappings.fetch_add(more, Relaxed);
    ADDED.fetch_add(more, Relaxed);
}

/// A region has so many.
pub(crate) fn set(shared: &Shared, now: i64) {
    let before = shared.mappings.swap(now, Relaxed);
    ADDED.fetch_add(now - before, Relaxed);
}

/// Where what is counted lies; the fault handler needs it.
pub(crate) fn places() -> [usize; 2] {
    [&raw const ADDED as usize, &raw const MOST as usize]
}
