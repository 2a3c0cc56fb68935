//! The arming times of a region's grains, and the detection of hot ones: the data that the fault
//! handler reads and writes.
//!
//! It is in a mapping of percid's own, like the region's [`Shared`](crate::access::pages::Shared).

use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use percid_rules::scan::Stamp;
use percid_rules::scan::migration_policy::{Decision, LookAgain};

use crate::sys::{clock, memory};

/// The data of a region.
#[derive(Debug)]
pub(crate) struct OfRegion {
    /// `true` if cold grains are demoted.
    pub(crate) is_demoted: bool,
    /// Number of bytes that were found hot on slow nodes so far.
    pub(crate) hot: AtomicU64,
    /// The grain at which the search for cold grains continues; the number of grains if it is
    /// complete.
    pub(crate) next_cold: AtomicUsize,
    /// Number of pages so far.
    pub(crate) promoted: AtomicU64,
    pub(crate) demoted: AtomicU64,
    /// The threshold of hot grains, in milliseconds.
    threshold: AtomicU64,
    /// The slow nodes, one bit each.
    slow: [AtomicU64; 16],
    grains: usize,
    stamps: *const AtomicU32,
}

// SAFETY: the pointer leads into the mapping that the structure itself lies in, to atomics.
unsafe impl Send for OfRegion {}
// SAFETY: the pointer leads to atomics; all other fields are atomic or never change.
unsafe impl Sync for OfRegion {}

impl OfRegion {
    fn bytes(grains: usize) -> usize {
        size_of::<OfRegion>() + grains * size_of::<AtomicU32>()
    }

    /// Returns the addresses of the mapping.
    pub(crate) fn mapping(&self) -> Range<usize> {
        let start = std::ptr::from_ref(self).addr();
        start..start + OfRegion::bytes(self.grains)
    }

    fn stamps(&self) -> &[AtomicU32] {
        // SAFETY: the pointer leads to `grains` atomics behind this structure.
        unsafe { std::slice::from_raw_parts(self.stamps, self.grains) }
    }

    /// Records that a grain is armed now. Async-signal-safe.
    pub(crate) fn stamp(&self, grain: usize) {
        self.stamp_at(grain, clock::since_boot());
    }

    pub(crate) fn stamp_at(&self, grain: usize, now: Duration) {
        self.stamps()[grain].store(Stamp::from_time(now).word(), Relaxed);
    }

    /// Returns the time since a grain was armed last.
    pub(crate) fn age(&self, grain: usize, now: Duration) -> Duration {
        Stamp::from_word(self.stamps()[grain].load(Relaxed)).age(now)
    }

    /// Sets the slow nodes and the threshold from now on.
    pub(super) fn set(&self, slow: &[u32], threshold: Duration) {
        self.threshold.store(threshold.as_millis() as u64, Relaxed);
        for (index, word) in self.slow.iter().enumerate() {
            let here = slow.iter().filter(|node| **node as usize / 64 == index);
            word.store(here.fold(0, |bits, node| bits | 1 << (node % 64)), Relaxed);
        }
    }

    fn is_slow(&self, node: u32) -> bool {
        let word = self.slow.get(node as usize / 64);
        word.is_some_and(|word| word.load(Relaxed) >> (node % 64) & 1 == 1)
    }

    /// Returns `true` if one of two nodes is slow and the other is not.
    pub(crate) fn crosses(&self, from: u32, to: u32) -> bool {
        self.is_slow(from) != self.is_slow(to)
    }

    /// Counts moved pages, if they moved from one tier to the other.
    pub(crate) fn count(&self, from: u32, to: u32, pages: u64) {
        if self.crosses(from, to) {
            let count = if self.is_slow(to) { &self.demoted } else { &self.promoted };
            count.fetch_add(pages, Relaxed);
        }
    }

    /// Decides again about a used grain of `bytes` bytes on a slow node: it moves if it is hot, to
    /// a node that has memory. Async-signal-safe.
    pub(crate) fn judge(
        &self,
        decision: Decision,
        grain: usize,
        bytes: u64,
        home: u32,
        has_memory: bool,
    ) -> Decision {
        if !self.is_slow(home) {
            return decision;
        }
        let age = self.age(grain, clock::since_boot());
        let is_hot = age < Duration::from_millis(self.threshold.load(Relaxed)) && has_memory;
        if is_hot {
            self.hot.fetch_add(bytes, Relaxed);
        }
        // The time until the use decides, not the threads that used it before.
        let look_again = LookAgain::WithPass;
        Decision { moves: is_hot, look_again, change: false, confirmed: None, ..decision }
    }
}

/// The owner of a region's data.
#[derive(Debug)]
pub(crate) struct Tracked(NonNull<OfRegion>);

// SAFETY: any thread may use and unmap the data.
unsafe impl Send for Tracked {}
// SAFETY: the data consists of atomics and of fields that never change.
unsafe impl Sync for Tracked {}

impl Tracked {
    /// Makes the data of a region; nothing is known yet. All of it is in a mapping that `map`
    /// makes. Returns `None` if there is no memory.
    pub(super) fn new(
        grains: usize,
        is_demoted: bool,
        map: fn(usize) -> Option<NonNull<u8>>,
    ) -> Option<Tracked> {
        let base = map(OfRegion::bytes(grains))?;
        let stamps = base.as_ptr().wrapping_add(size_of::<OfRegion>()).cast_const().cast();
        let of_region = OfRegion {
            is_demoted,
            hot: AtomicU64::new(0),
            next_cold: AtomicUsize::new(grains),
            promoted: AtomicU64::new(0),
            demoted: AtomicU64::new(0),
            threshold: AtomicU64::new(0),
            slow: [const { AtomicU64::new(0) }; 16],
            grains,
            stamps,
        };
        let place = base.cast::<OfRegion>();
        // SAFETY: the mapping is new, large enough by `bytes`, and aligned to a page.
        unsafe { place.write(of_region) };
        Some(Tracked(place))
    }

    /// Returns the address of the data, for the fault handler.
    pub(crate) fn as_ptr(&self) -> *mut OfRegion {
        self.0.as_ptr()
    }
}

impl Deref for Tracked {
    type Target = OfRegion;

    fn deref(&self) -> &OfRegion {
        // SAFETY: the data was written in `new` and stays until this value is dropped.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let bytes = self.mapping().len();
        // SAFETY: this value owns the mapping. It belongs to the region's pages, which are dropped
        // when no handler uses them any more.
        unsafe { memory::unmap(self.0.cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use percid_rules::scan::migration_policy::PageHistory;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn tracked() -> Tracked {
        let tracked = Tracked::new(8, true, memory::map).expect("memory");
        tracked.set(&[1, 70], SECOND);
        tracked
    }

    fn decision(moves: bool) -> Decision {
        let history = PageHistory::default();
        let (local, private, change, confirmed) = (false, true, true, Some(true));
        let look_again = LookAgain::Soon;
        Decision { history, local, private, moves, look_again, change, confirmed }
    }

    #[test]
    fn what_is_used_soon_after_it_was_armed_is_hot() {
        let tracked = tracked();
        tracked.stamp(3);
        let judged = tracked.judge(decision(false), 3, 4096, 1, true);
        assert!(judged.moves && !judged.change && judged.confirmed.is_none());
        assert_eq!(judged.look_again, LookAgain::WithPass);
        assert_eq!(tracked.hot.load(Relaxed), 4096);
        assert!(!tracked.judge(decision(true), 3, 4096, 1, false).moves, "nowhere to go");
    }

    #[test]
    fn what_is_used_late_is_not_hot() {
        let tracked = tracked();
        let long_ago = Stamp::from_time(clock::since_boot()).word().wrapping_sub(200);
        tracked.stamps()[3].store(long_ago, Relaxed);
        assert!(!tracked.judge(decision(true), 3, 4096, 70, true).moves);
        assert_eq!(tracked.hot.load(Relaxed), 0);
    }

    #[test]
    fn on_fast_nodes_the_decision_stays() {
        let tracked = tracked();
        for moves in [true, false] {
            assert_eq!(tracked.judge(decision(moves), 3, 4096, 0, true), decision(moves));
        }
        assert_eq!(tracked.hot.load(Relaxed), 0);
    }

    #[test]
    fn pages_are_counted_by_where_they_go() {
        let tracked = tracked();
        for (from, to, pages) in [(0, 1, 3), (70, 2, 5), (0, 2, 7), (1, 70, 9)] {
            tracked.count(from, to, pages);
        }
        let counts = [&tracked.promoted, &tracked.demoted].map(|count| count.load(Relaxed));
        assert_eq!(counts, [5, 3]);
    }

    #[test]
    fn each_slow_node_is_one_of_1024() {
        let tracked = tracked();
        for node in [0, 1, 63, 64, 65, 127, 128, 500, 1023] {
            tracked.set(&[node], SECOND);
            let slow: Vec<u32> = (0..1100).filter(|&other| tracked.is_slow(other)).collect();
            assert_eq!(slow, [node]);
        }
    }

    #[test]
    fn the_mapping_covers_all_stamps() {
        let tracked = tracked();
        let last = std::ptr::from_ref(&tracked.stamps()[7]).addr();
        assert_eq!(tracked.mapping().end, last + size_of::<AtomicU32>());
    }
}
