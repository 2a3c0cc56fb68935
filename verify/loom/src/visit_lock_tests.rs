//! The lock of visitors: one visits at a time and sees what those before it did, also if the first
//! one was a thread of the parent.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use crate::explore;
use crate::sys::holder::GONE;
use crate::visit_lock::VisitLock;

/// A structure that one visitor at a time may use: loom checks that.
struct Structure {
    lock: VisitLock,
    visits: UnsafeCell<u32>,
}

impl Structure {
    fn visit(&self) {
        let guard = self.lock.lock();
        assert!(guard.is_some(), "no other thread is up this stack");
        self.visit_unlocked();
        assert!(self.lock.lock().is_none(), "this thread visits already");
    }

    fn visit_unlocked(&self) {
        // SAFETY: that no other thread visits is what is checked.
        self.visits.with_mut(|visits| unsafe { *visits += 1 });
    }
}

/// Runs two visitors; `left` is the visitor that they find.
fn two_visitors(left: u64, visit: fn(&Structure)) {
    let lock = VisitLock { visitor: AtomicU64::new(left) };
    let structure = Arc::new(Structure { lock, visits: UnsafeCell::new(0) });
    let theirs = Arc::clone(&structure);
    let other = thread::spawn(move || visit(&theirs));
    visit(&structure);
    other.join().unwrap();
    // SAFETY: all threads have ended.
    structure.visits.with(|visits| assert_eq!(unsafe { *visits }, 2));
}

#[test]
fn one_visits_at_a_time() {
    explore::bounded(3, "visits, 2 threads", || two_visitors(0, Structure::visit));
}

#[test]
fn a_visitor_of_the_parent_is_not_waited_for() {
    explore::bounded(3, "visits, abandoned, 2 threads", || {
        two_visitors(GONE, Structure::visit);
    });
}

#[test]
fn visiting_without_the_lock_is_caught() {
    explore::expect_failure("visits, no lock", || two_visitors(0, Structure::visit_unlocked));
}
