//! How many mappings trapping adds to the process, whose number is limited: where armed grains end
//! and others begin, so do mappings.
//!
//! All trapped regions of the process count together, whatever their balancers, and may add a
//! quarter of the limit. The rest is the program's, whose own `mmap` would fail. The count follows
//! the bits of the armed grains. Threads that disarm neighbours at the same time count a few too
//! many or too few, which every pass corrects.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::access::pages::Shared;

/// Trapping may add one part in four.
const SHARE: i64 = 4;
/// `vm.max_map_count` unless told otherwise.
const USUAL: i64 = 65530;

static ADDED: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(USUAL / SHARE);

/// Reads how many mappings a process can have. Allocates: not async-signal-safe.
pub(crate) fn measure() {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let limit = limit.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(USUAL);
    MOST.store(limit / SHARE, Relaxed);
}

/// Returns whether `more` may be added; fewer always may.
pub(crate) fn fits(more: i64) -> bool {
    more <= 0 || ADDED.load(Relaxed) + more <= MOST.load(Relaxed)
}

/// Returns whether half of the budget is spent: time to restore rights before none is left.
pub(crate) fn is_short() -> bool {
    ADDED.load(Relaxed) > MOST.load(Relaxed) / 2
}

/// A region has `more` than before.
pub(crate) fn add(shared: &Shared, more: i64) {
    shared.mappings.fetch_add(more, Relaxed);
    ADDED.fetch_add(more, Relaxed);
}

/// A region has `now`.
pub(crate) fn set(shared: &Shared, now: i64) {
    let before = shared.mappings.swap(now, Relaxed);
    ADDED.fetch_add(now - before, Relaxed);
}

/// The addresses of the counts; the fault handler needs them.
pub(crate) fn places() -> [usize; 2] {
    [&raw const ADDED as usize, &raw const MOST as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::pages::{Layout, Pages};
    use crate::sys::memory;
    use percid_rules::scan::Width;

    /// Other tests add and remove a few of their own.
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
        let most = MOST.load(Relaxed);
        assert!(fits(most / 2) && !fits(2 * most));
        add(&pages, 2 * most);
        assert!(!fits(1) && fits(0) && is_short());
        set(&pages, 0);
        assert!(fits(most / 2));
    }
}
