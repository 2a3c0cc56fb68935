//! Publishing: one value is kept, and all threads that get it observe its complete contents.

use std::ptr::{self, NonNull};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::published::Published;

/// Explores two threads that publish: each makes its own value, and one of the two is kept.
fn two_threads(publish: fn(&Published<AtomicU32>, NonNull<AtomicU32>) -> bool) {
    let shared = Arc::new(Published { place: AtomicPtr::new(ptr::null_mut()) });
    let work = move |shared: &Published<AtomicU32>, number: u32| {
        if let Some(theirs) = shared.get() {
            assert_ne!(theirs.load(Relaxed), 0, "seen before it was made");
        }
        // It stays forever, like published values in the library.
        let made = Box::leak(Box::new(AtomicU32::new(0)));
        made.store(number, Relaxed);
        let won = publish(shared, NonNull::from(&*made));
        let kept = shared.get().expect("published").load(Relaxed);
        assert_ne!(kept, 0, "seen before it was made");
        assert!(!won || kept == number, "replaced");
        kept
    };
    let theirs = Arc::clone(&shared);
    let other = thread::spawn(move || work(&theirs, 7));
    let kept = work(&shared, 8);
    assert_eq!(other.join().unwrap(), kept);
}

#[test]
fn one_is_kept_and_nobody_sees_half() {
    explore::all("published, 2 threads", || {
        // SAFETY: it was leaked.
        two_threads(|shared, made| unsafe { shared.publish(made) });
    });
}

#[test]
fn one_that_is_replaced_is_caught() {
    explore::expect_failure("published and replaced", || {
        two_threads(|shared, made| {
            shared.place.store(made.as_ptr(), Relaxed);
            true
        });
    });
}
