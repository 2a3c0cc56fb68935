//! Threads that look without a lock: a thread that removes something and finds no looker has
//! exclusive access.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::thread;

use crate::explore;
use crate::lookers::Lookers;

/// Something that threads look at while it is there; loom fails a test in which it is used at the
/// same time, or one use does not see what was done in the other.
struct Place {
    lookers: Lookers,
    is_there: AtomicBool,
    what: UnsafeCell<u32>,
}

impl Place {
    fn new() -> Arc<Place> {
        Arc::new(Place {
            lookers: Lookers { word: AtomicU64::new(0) },
            is_there: AtomicBool::new(true),
            what: UnsafeCell::new(0),
        })
    }

    fn look(&self) {
        if self.is_there.load(Acquire) {
            // SAFETY: that the value is not being freed is the property under test.
            self.what.with(|what| assert_eq!(unsafe { *what }, 0, "it was given back"));
        }
    }

    fn give_back(&self) {
        // SAFETY: that no other thread uses the value is the property under test.
        self.what.with_mut(|what| unsafe { *what = 1 });
    }
}

fn a_looker_and_one_that_gives_back(is_nobody_there: fn(&Lookers) -> bool) {
    let place = Place::new();
    let theirs = Arc::clone(&place);
    let looker = thread::spawn(move || theirs.lookers.look(|| theirs.look()));
    place.is_there.store(false, Relaxed);
    if is_nobody_there(&place.lookers) {
        place.give_back();
    }
    looker.join().unwrap();
}

#[test]
fn nobody_looks_at_what_is_given_back() {
    let counts = |lookers: &Lookers| lookers.count() == 0;
    explore::all("lookers, one that looks and one that gives back", move || {
        a_looker_and_one_that_gives_back(counts);
    });
    explore::bounded(2, "lookers, two that look and one that gives back", move || {
        let place = Place::new();
        let lookers = [(); 2].map(|()| {
            let place = Arc::clone(&place);
            thread::spawn(move || place.lookers.look(|| place.look()))
        });
        place.is_there.store(false, Release);
        if counts(&place.lookers) {
            place.give_back();
        }
        lookers.into_iter().for_each(|looker| looker.join().unwrap());
        assert_eq!(place.lookers.count(), 0);
    });
    explore::expect_failure("lookers, a count by a mere load", || {
        a_looker_and_one_that_gives_back(|lookers| lookers.word.load(Acquire) as u32 == 0);
    });
    explore::expect_failure("lookers, no count", || {
        a_looker_and_one_that_gives_back(|_| true);
    });
}
