//! The slow path's lock: at most one holder, and each sees what the one before it wrote.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::try_lock::TryLock;

#[test]
fn at_most_one_holds_it_and_sees_everything() {
    explore::all("try_lock, 3 threads", || {
        let shared = Arc::new((TryLock { taken: AtomicU32::new(0) }, UnsafeCell::new(0u32)));
        let work = |shared: Arc<(TryLock, UnsafeCell<u32>)>| {
            let Some(_held) = shared.0.try_lock() else { return 0 };
            // SAFETY: loom checks exactly this: that no other thread is here.
            shared.1.with_mut(|place| unsafe { *place += 1 });
            1
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || work(shared))
            })
            .collect();
        let mut entered = work(Arc::clone(&shared));
        entered += others.into_iter().map(|other| other.join().unwrap()).sum::<u32>();
        // SAFETY: the threads have ended.
        assert_eq!(shared.1.with(|place| unsafe { *place }), entered);
        assert!(entered >= 1 && shared.0.try_lock().is_some());
    });
}

#[test]
fn a_relaxed_lock_is_caught() {
    explore::expect_failure("try_lock without acquire and release", || {
        let shared = Arc::new((AtomicU32::new(0), UnsafeCell::new(0u32)));
        let work = |shared: &(AtomicU32, UnsafeCell<u32>)| {
            if shared.0.compare_exchange(0, 1, Relaxed, Relaxed).is_ok() {
                // SAFETY: loom must find that this is not so.
                shared.1.with_mut(|place| unsafe { *place += 1 });
                shared.0.store(0, Relaxed);
            }
        };
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || work(&theirs));
        work(&shared);
        other.join().unwrap();
    });
}
