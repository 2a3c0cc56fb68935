//! Preparing: a thread that observes the end of it observes its effects.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::prepared::Prepared;

#[test]
fn who_finds_it_prepared_sees_what_was_stored() {
    explore::all("prepared, 2 threads", || {
        let shared = Arc::new((Prepared { done: AtomicU32::new(0) }, AtomicU32::new(0)));
        let work = |shared: &(Prepared, AtomicU32)| {
            let prepare = || {
                shared.1.store(1, Relaxed);
                Ok::<(), ()>(())
            };
            shared.0.ensure(prepare).expect("prepared");
            assert_eq!(shared.1.load(Relaxed), 1);
        };
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || work(&theirs));
        work(&shared);
        other.join().unwrap();
    });
}

#[test]
fn what_failed_is_tried_again_and_what_succeeded_is_not() {
    explore::all("prepared, 1 thread", || {
        let prepared = Prepared { done: AtomicU32::new(0) };
        assert_eq!(prepared.ensure(|| Err(5)), Err(5));
        assert_eq!(prepared.ensure(|| Ok::<(), i32>(())), Ok(()));
        assert_eq!(prepared.ensure::<i32>(|| unreachable!("it is prepared")), Ok(()));
    });
}

#[test]
fn a_relaxed_word_is_caught() {
    explore::expect_failure("prepared without acquire and release", || {
        let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || {
            theirs.1.store(1, Relaxed);
            theirs.0.store(1, Relaxed);
        });
        assert!(shared.0.load(Relaxed) == 0 || shared.1.load(Relaxed) == 1);
        other.join().unwrap();
    });
}
