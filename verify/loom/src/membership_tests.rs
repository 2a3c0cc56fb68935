//! A word of the active mask: whatever is marked and drained at the same time, no thread is missed.

use std::sync::atomic::Ordering::Relaxed as Plain;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

use crate::id::fence;
use crate::{explore, membership};

const BITS: [u64; 2] = [1, 2];

/// A mask of two IDs and what they have published.
#[derive(Default)]
struct Mask {
    word: AtomicU64,
    published: [AtomicU64; 2],
}

impl Mask {
    /// Adds an item, as the only thread with this ID, and marks.
    fn publish(&self, id: usize) {
        self.published[id].store(1, Relaxed);
        self.mark(id);
    }

    fn mark(&self, id: usize) {
        if !membership::is_set(&self.word, BITS[id]) {
            membership::set(&self.word, BITS[id]);
        }
    }

    /// Drains; answers what was found.
    fn drain(&self) -> [u64; 2] {
        let taken = membership::take(&self.word);
        fence::all();
        std::array::from_fn(|id| {
            if taken & BITS[id] == 0 { 0 } else { self.published[id].load(Relaxed) }
        })
    }
}

/// One ID publishes while its bit is set already, and a drain comes: it finds the item, or the bit
/// is set.
fn one_marker_and_a_drain(publish: fn(&Mask)) {
    let mask = Arc::new(Mask::default());
    mask.mark(0);
    let theirs = Arc::clone(&mask);
    let marker = thread::spawn(move || publish(&theirs));
    let found = mask.drain()[0];
    marker.join().unwrap();
    assert!(found == 1 || mask.word.load(Relaxed) & BITS[0] != 0, "the item is missed");
}

// One test, so that no other runs while the control skips the fence.
#[test]
fn a_drain_misses_no_member_and_needs_the_fence_and_the_order() {
    explore::all("membership, a marker and a drain", || {
        one_marker_and_a_drain(|mask| mask.publish(0));
    });
    explore::all("membership, two markers and a drain, then another", || {
        let mask = Arc::new(Mask::default());
        mask.mark(0);
        let markers: Vec<_> = (0..2)
            .map(|id| {
                let mask = Arc::clone(&mask);
                thread::spawn(move || mask.publish(id))
            })
            .collect();
        let first = mask.drain();
        markers.into_iter().for_each(|marker| marker.join().unwrap());
        let second = mask.drain();
        for id in 0..2 {
            assert_eq!(first[id] | second[id], 1, "the item of ID {id} is missed");
        }
    });
    explore::expect_failure("membership, testing before publishing", || {
        one_marker_and_a_drain(|mask| {
            mask.mark(0);
            mask.published[0].store(1, Relaxed);
        });
    });
    fence::SKIP.store(true, Plain);
    explore::expect_failure("membership, no fence", || {
        one_marker_and_a_drain(|mask| mask.publish(0));
    });
    fence::SKIP.store(false, Plain);
}
