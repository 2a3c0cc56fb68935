//! The baseline of a floating-point sum: whatever is added and taken at the same time, nothing is
//! lost or taken twice.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, Ordering::Relaxed};
use loom::thread;

use crate::float_word::{float, float_bits};
use crate::{baseline, explore};

/// A counter with the words of two IDs. Its numbers are exact as floats.
struct Words {
    taken: AtomicI64,
    ids: [AtomicI64; 2],
}

impl Words {
    fn new() -> Words {
        let word = || AtomicI64::new(float_bits(0.0));
        Words { taken: word(), ids: [word(), word()] }
    }

    fn total(&self) -> f64 {
        self.ids.iter().map(|word| float(word.load(Relaxed))).sum()
    }

    fn take(&self) -> f64 {
        loop {
            if let Some(taken) = baseline::take(&self.taken, || self.total()) {
                assert!(taken >= 0.0, "what was taken before was taken again: {taken}");
                return taken;
            }
            thread::yield_now();
        }
    }

    /// Adds as a critical section does, to a word that is still 0.
    fn add_as(&self, id: usize, n: f64) {
        self.ids[id].store(float_bits(n), Relaxed);
    }

    fn remaining(&self) -> f64 {
        let remaining = baseline::remaining(&self.taken, || self.total());
        assert!(remaining >= 0.0, "less than was ever added: {remaining}");
        remaining
    }
}

#[test]
fn takes_and_additions_add_up() {
    explore::all("baseline, 2 takers and additions", || {
        let words = Arc::new(Words::new());
        let theirs = Arc::clone(&words);
        let other = thread::spawn(move || {
            theirs.add_as(0, 0.5);
            theirs.take()
        });
        words.add_as(1, 4.0);
        let taken = words.take();
        let taken = taken + other.join().unwrap();
        assert_eq!(taken + words.remaining(), 4.5);
    });
}

/// One thread sums while the other adds and takes; whichever of the two begins.
#[test]
fn a_sum_beside_a_take_has_all_that_was_taken() {
    for sums_first in [true, false] {
        explore::all("baseline, who adds and takes, and who sums", move || {
            let words = Arc::new(Words::new());
            let work = |words: &Words, sums: bool| match sums {
                true => _ = words.remaining(),
                false => {
                    words.add_as(0, 1.0);
                    assert_eq!(words.take(), 1.0);
                }
            };
            let theirs = Arc::clone(&words);
            let other = thread::spawn(move || work(&theirs, !sums_first));
            work(&words, sums_first);
            other.join().unwrap();
            assert_eq!(words.remaining(), 0.0);
        });
    }
}

#[test]
fn a_take_beside_a_take_takes_nothing_back() {
    explore::bounded(3, "baseline, 2 takers, and who adds", || {
        let words = Arc::new(Words::new());
        let (adding, taking) = (Arc::clone(&words), Arc::clone(&words));
        let adding = thread::spawn(move || adding.add_as(0, 1.0));
        let taking = thread::spawn(move || taking.take());
        let mine = words.take();
        adding.join().unwrap();
        assert_eq!(mine + taking.join().unwrap() + words.remaining(), 1.0);
    });
}

#[test]
fn taking_by_a_plain_store_is_caught() {
    explore::expect_failure("baseline, a take that overwrites", || {
        let words = Arc::new(Words::new());
        words.add_as(0, 1.0);
        let theirs = Arc::clone(&words);
        let other = thread::spawn(move || theirs.take());
        let before = words.taken.load(Relaxed);
        let total = words.total();
        words.taken.store(float_bits(total), Relaxed);
        let taken = total - float(before);
        assert_eq!(taken + other.join().unwrap() + words.remaining(), 1.0);
    });
}
