//! The shared slot: whatever is added and taken at the same time, nothing is lost or counted twice.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::shared_slot;

/// A counter with one shared word and the words of two IDs.
#[derive(Default)]
struct Words {
    shared: AtomicI64,
    ids: [AtomicI64; 2],
}

impl Words {
    fn total_of_ids(&self) -> i64 {
        self.ids.iter().map(|word| word.load(Relaxed)).sum()
    }

    fn take(&self) -> i64 {
        self.swap(0)
    }

    fn swap(&self, n: i64) -> i64 {
        loop {
            if let Some(taken) = shared_slot::swap(&self.shared, n, || self.total_of_ids()) {
                assert!(taken >= 0, "what was taken before was taken again: {taken}");
                return taken;
            }
            thread::yield_now();
        }
    }

    /// Adds as a critical section does: this ID belongs to the calling thread. Its word is still 0;
    /// loom would regard a load of it as a dependency of the store.
    fn add_as(&self, id: usize, n: i64) {
        self.ids[id].store(n, Relaxed);
    }

    fn total(&self) -> i64 {
        let total = shared_slot::sum(Some(&self.shared), || self.total_of_ids());
        assert!(total >= 0, "less than was ever added: {total}");
        total
    }
}

#[test]
fn takes_and_additions_add_up() {
    explore::all("shared_slot, 2 takers, additions with and without an ID", || {
        let words = Arc::new(Words::default());
        let theirs = Arc::clone(&words);
        let other = thread::spawn(move || {
            theirs.add_as(0, 1);
            shared_slot::add(&theirs.shared, 10);
            theirs.take()
        });
        words.add_as(1, 100);
        let taken = words.take();
        let taken = taken + other.join().unwrap();
        assert_eq!(taken + words.total(), 111);
    });
}

#[test]
fn swaps_and_additions_add_up() {
    explore::all("shared_slot, 2 that swap, additions with and without an ID", || {
        let words = Arc::new(Words::default());
        let theirs = Arc::clone(&words);
        let other = thread::spawn(move || {
            theirs.add_as(0, 1);
            shared_slot::add(&theirs.shared, 10);
            theirs.swap(1000) - 1000
        });
        words.add_as(1, 100);
        let taken = words.swap(5000) - 5000;
        let taken = taken + other.join().unwrap();
        assert_eq!(taken + words.total(), 111);
    });
}

/// One thread sums while the other adds and takes; whichever of the two begins.
#[test]
fn a_sum_beside_a_take_counts_nothing_as_taken_that_it_has_not_seen() {
    for sums_first in [true, false] {
        explore::all("shared_slot, who adds and takes, and who sums", move || {
            let words = Arc::new(Words::default());
            let work = |words: &Words, sums: bool| match sums {
                true => _ = words.total(),
                false => {
                    words.add_as(0, 1);
                    assert_eq!(words.take(), 1);
                }
            };
            let theirs = Arc::clone(&words);
            let other = thread::spawn(move || work(&theirs, !sums_first));
            work(&words, sums_first);
            other.join().unwrap();
            assert_eq!(words.total(), 0);
        });
    }
}

#[test]
fn a_take_beside_a_take_takes_nothing_back() {
    explore::bounded(3, "shared_slot, 2 takers, and who adds", || {
        let words = Arc::new(Words::default());
        let (adding, taking) = (Arc::clone(&words), Arc::clone(&words));
        let adding = thread::spawn(move || adding.add_as(0, 1));
        let taking = thread::spawn(move || taking.take());
        let mine = words.take();
        adding.join().unwrap();
        assert_eq!(mine + taking.join().unwrap() + words.total(), 1);
    });
}

#[test]
fn taking_by_a_plain_store_is_caught() {
    explore::expect_failure("shared_slot, a take that overwrites", || {
        let words = Arc::new(Words::default());
        let theirs = Arc::clone(&words);
        let other = thread::spawn(move || shared_slot::add(&theirs.shared, 10));
        let before = words.shared.load(Relaxed);
        let taken = before + words.total_of_ids();
        words.shared.store(before - taken, Relaxed);
        other.join().unwrap();
        assert_eq!(taken + words.total(), 10);
    });
}
