//! The words of the active mask: whatever is marked and drained at the same time, no thread is
//! missed.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed as Plain};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

use crate::id::fence;
use crate::id::set::IdSet;
use crate::{explore, membership};

const BITS: [u64; 2] = [1, 2];

/// A mask of two IDs and what they have published.
#[derive(Default)]
struct Mask {
    words: [AtomicU64; 1],
    published: [AtomicU64; 2],
}

impl Mask {
    /// Adds an item, as the only thread with this ID, and marks.
    fn publish(&self, id: usize) {
        self.published[id].store(1, Relaxed);
        self.mark(id);
    }

    fn mark(&self, id: usize) {
        if !membership::is_set(&self.words[0], BITS[id]) {
            membership::set(&self.words[0], BITS[id]);
        }
    }

    fn is_marked(&self, id: usize) -> bool {
        self.words[0].load(Relaxed) & BITS[id] != 0
    }

    /// Drains; returns the found values.
    fn drain(&self) -> [u64; 2] {
        let [taken] = membership::take(&self.words);
        std::array::from_fn(|id| {
            if taken & BITS[id] == 0 { 0 } else { self.published[id].load(Relaxed) }
        })
    }
}

/// Explores a publication of an ID whose bit is set already, and a drain: it finds the item, or the
/// bit is set.
fn one_marker_and_a_drain(publish: fn(&Mask)) {
    let mask = Arc::new(Mask::default());
    mask.mark(0);
    let theirs = Arc::clone(&mask);
    let marker = thread::spawn(move || publish(&theirs));
    let found = mask.drain()[0];
    marker.join().unwrap();
    assert!(found == 1 || mask.is_marked(0), "the item is missed");
}

fn two_markers_and_a_drain_then_another() {
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
}

/// Explores one marked ID and another that becomes so, while the kernel refuses the fence to a
/// drain.
fn two_markers_and_a_refused_drain() {
    let mask = Arc::new(Mask::default());
    mask.mark(0);
    let markers = [0, 1].map(|id| {
        let mask = Arc::clone(&mask);
        thread::spawn(move || mask.publish(id))
    });
    assert_eq!(membership::take(&mask.words), [0]);
    markers.into_iter().for_each(|marker| marker.join().unwrap());
    assert!(mask.is_marked(0) && mask.is_marked(1), "an item is missed");
}

/// Checks that a thread that takes a bit which was clear before reads what it announces, by the
/// language's rules alone.
fn a_bit_that_is_set_carries_what_it_announces() {
    let mask = Arc::new(Mask::default());
    let theirs = Arc::clone(&mask);
    let marker = thread::spawn(move || {
        theirs.published[0].store(1, Relaxed);
        membership::set(&theirs.words[0], BITS[0]);
    });
    let [taken] = membership::take(&mask.words);
    if taken == BITS[0] {
        assert_eq!(mask.published[0].load(Relaxed), 1, "the item is not visible");
    }
    marker.join().unwrap();
}

/// A mask of one ID whose drainers run no fence.
#[derive(Default)]
struct Unfenced {
    set: IdSet,
    published: AtomicU64,
}

fn one_marker_and_a_drain_without_fence(insert: fn(&IdSet), remove: fn(&IdSet)) {
    let mask = Arc::new(Unfenced::default());
    insert(&mask.set);
    let theirs = Arc::clone(&mask);
    let marker = thread::spawn(move || {
        theirs.published.store(1, Relaxed);
        insert(&theirs.set);
    });
    let mut found = false;
    if mask.set.contains(0) {
        remove(&mask.set);
        found = mask.published.load(Relaxed) == 1;
    }
    marker.join().unwrap();
    assert!(found || mask.set.contains(0), "the item is missed");
}

/// Runs `body` while a switch is on.
fn with(switch: &AtomicBool, body: impl FnOnce()) {
    switch.store(true, Plain);
    body();
    switch.store(false, Plain);
}

// One test, so that no other runs while a switch is on.
#[test]
fn a_drain_misses_no_member_and_needs_the_fence_and_the_order() {
    explore::all("membership, a marker and a drain", || {
        one_marker_and_a_drain(|mask| mask.publish(0));
    });
    explore::all(
        "membership, two markers and a drain, then another",
        two_markers_and_a_drain_then_another,
    );
    explore::expect_failure("membership, testing before publishing", || {
        one_marker_and_a_drain(|mask| {
            mask.mark(0);
            mask.published[0].store(1, Relaxed);
        });
    });
    with(&fence::REFUSE, || {
        explore::all("membership, a refused fence", two_markers_and_a_refused_drain);
    });
    with(&fence::SKIP, || {
        explore::all("membership, a bit alone", a_bit_that_is_set_carries_what_it_announces);
        explore::expect_failure("membership, no fence", || {
            one_marker_and_a_drain(|mask| mask.publish(0));
        });
    });
}

#[test]
fn without_fence_the_barriers_of_both_sides_are_needed() {
    let insert: fn(&IdSet) = |set| membership::insert(set, 0);
    let remove: fn(&IdSet) = |set| membership::remove(set, 0);
    explore::all("membership without fence, a marker and a drain", move || {
        one_marker_and_a_drain_without_fence(insert, remove);
    });
    explore::expect_failure("membership without fence, no barrier of the marker", move || {
        let insert_only = |set: &IdSet| {
            if !set.contains(0) {
                set.insert(0);
            }
        };
        one_marker_and_a_drain_without_fence(insert_only, remove);
    });
    explore::expect_failure("membership without fence, no barrier of the drainer", move || {
        one_marker_and_a_drain_without_fence(insert, |set| set.remove(0));
    });
}
