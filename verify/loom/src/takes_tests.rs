//! Takes and readings without a lock: a reading sees one side of a take, also if what was taken is
//! updated at once.

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicI64, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use loom::thread;

use crate::explore;
use crate::takes::Takes;

/// A value of two words, which a take sets to zero. `free` is its state.
struct Value {
    takes: Takes,
    words: [AtomicI64; 2],
    free: AtomicI64,
}

impl Value {
    fn new() -> Value {
        let word = || AtomicI64::new(1);
        Value {
            takes: Takes { number: AtomicU32::new(0) },
            words: [word(), word()],
            free: AtomicI64::new(0),
        }
    }

    fn take(&self) {
        self.takes.begin();
        self.zero();
        self.takes.end();
    }

    fn zero(&self) {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
        self.free.store(1, Release);
    }

    /// Updates a word as a section does, if the value was taken.
    fn update(&self) {
        if self.free.load(Acquire) == 1 {
            // The barrier for stores of a section.
            fence(Release);
            self.words[1].store(2, Relaxed);
        }
    }

    fn read(&self) -> Option<[i64; 2]> {
        self.takes.without(|| [self.words[0].load(Relaxed), self.words[1].load(Relaxed)])
    }
}

/// A reading beside a take, and an update of what was taken.
fn read_beside(take: fn(&Value)) {
    let value = Arc::new(Value::new());
    let [taken, updated] = [(), ()].map(|()| Arc::clone(&value));
    let taker = thread::spawn(move || take(&taken));
    let updater = thread::spawn(move || updated.update());
    if let Some(read) = value.read() {
        assert!([[1, 1], [0, 0], [0, 2]].contains(&read), "of several moments: {read:?}");
    }
    taker.join().unwrap();
    updater.join().unwrap();
}

#[test]
fn a_reading_sees_one_side_of_a_take() {
    explore::bounded(3, "takes, 3 threads", || read_beside(Value::take));
}

#[test]
fn a_take_without_the_mark_is_caught() {
    explore::expect_failure("takes, no mark", || read_beside(Value::zero));
}
