//! Pending moves of grains: the balancer gets the last record, or the wish is still there.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::wishes;

const BIT: u64 = 1 << 5;

struct Grain {
    wanted: AtomicU64,
    record: AtomicU32,
}

impl Grain {
    fn wish(&self, record: u32) -> bool {
        self.record.store(record, Relaxed);
        wishes::make(&self.wanted, BIT)
    }

    fn take(&self) -> (bool, u32) {
        wishes::take(&self.wanted, BIT, &self.record)
    }

    /// Takes the wish after the record was read, which is the wrong order.
    fn take_too_late(&self) -> (bool, u32) {
        let record = self.record.load(Relaxed);
        (wishes::take_back(&self.wanted, BIT), record)
    }
}

/// Explores a grain with a pending move to 1 that is wanted at 2 while the balancer takes it.
fn a_thread_and_the_balancer(take: fn(&Grain) -> (bool, u32)) {
    let grain = Arc::new(Grain { wanted: AtomicU64::new(0), record: AtomicU32::new(0) });
    assert!(grain.wish(1), "there was none");
    let theirs = Arc::clone(&grain);
    let thread = thread::spawn(move || theirs.wish(2));
    let (was_there, record) = take(&grain);
    let made = thread.join().unwrap();
    let is_left = grain.wanted.load(Relaxed) == BIT;
    assert!(was_there && made == is_left, "a wish is counted twice, or not at all");
    assert!(is_left || record == 2, "the last wish is lost");
}

#[test]
fn the_last_wish_is_not_lost() {
    explore::all("wishes, a thread and the balancer", || a_thread_and_the_balancer(Grain::take));
    explore::expect_failure("wishes, a balancer that looks where to first", || {
        a_thread_and_the_balancer(Grain::take_too_late);
    });
}

/// One that thinks better of it.
#[test]
fn a_wish_that_is_taken_back_is_taken_once() {
    explore::all("wishes, one that is taken back and taken", || {
        let grain = Arc::new(Grain { wanted: AtomicU64::new(0), record: AtomicU32::new(0) });
        grain.wish(1);
        let theirs = Arc::clone(&grain);
        let thread = thread::spawn(move || wishes::take_back(&theirs.wanted, BIT));
        let (was_there, _) = grain.take();
        assert!(was_there != thread.join().unwrap());
    });
}
