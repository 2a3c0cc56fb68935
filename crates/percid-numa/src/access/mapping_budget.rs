//! Limit for the mappings that trapping adds to the process: a mapping ends wherever armed grains
//! begin or end, and the number of mappings is limited.
//!
//! All trapped regions of the process count together, for all balancers, and may add a quarter of
//! the limit. The rest is left to the program, whose own `mmap` would otherwise fail. The count is
//! derived from the bits of the armed grains. Threads that disarm neighbours at the same time make
//! it slightly too high or too low; every pass corrects it.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::access::pages::Shared;

/// Trapping may add one mapping in four.
const SHARE: i64 = 4;
/// Default of `vm.max_map_count`.
const USUAL: i64 = 65530;

static ADDED: AtomicI64 = AtomicI64::new(0);
static MAX_ADDED: AtomicI64 = AtomicI64::new(USUAL / SHARE);

/// Reads the maximum number of mappings of a process. Allocates: not async-signal-safe.
pub(crate) fn measure() {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let limit = limit.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(USUAL);
    MAX_ADDED.store(limit / SHARE, Relaxed);
}

/// Returns `true` if `more` mappings may be added; a negative number always fits.
pub(crate) fn fits(more: i64) -> bool {
    more <= 0 || ADDED.load(Relaxed) + more <= MAX_ADDED.load(Relaxed)
}

/// Returns `true` if half of the budget is used: the rights must be restored before all of it is.
pub(crate) fn is_short() -> bool {
    ADDED.load(Relaxed) > MAX_ADDED.load(Relaxed) / 2
}

/// Adds `more` mappings to a region's count.
pub(crate) fn add(shared: &Shared, more: i64) {
    shared.mappings.fetch_add(more, Relaxed);
    ADDED.fetch_add(more, Relaxed);
}

/// Sets a region's count to `now`.
pub(crate) fn set(shared: &Shared, now: i64) {
    let before = shared.mappings.swap(now, Relaxed);
    ADDED.fetch_add(now - before, Relaxed);
}

/// Returns the addresses of the counts; the fault handler needs them.
pub(crate) fn places() -> [usize; 2] {
    [&raw const ADDED as usize, &raw const MAX_ADDED as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::pages::{Layout, Pages};
    use crate::sys::memory;
    use percid_rules::scan::Width;

    /// Tolerates a few mappings that other tests add and remove.
    #[test]
    fn what_a_region_adds_is_given_back() {
        let (start, bytes, shift, width) = (1 << 20, 1 << 16, 16, Width::Bits64);
        let layout = Layout {
            start,
            bytes,
            shift,
            nodes: 1,
            rights: 0,
            width,
            backoff: false,
            anonymous: true,
        };
        let pages = Pages::new(layout, &[0], memory::map).expect("memory");
        let most = MAX_ADDED.load(Relaxed);
        assert!(fits(most / 2) && !fits(2 * most));
        add(&pages, 2 * most);
        assert!(!fits(1) && fits(0) && is_short());
        set(&pages, 0);
        assert!(fits(most / 2));
    }
}
