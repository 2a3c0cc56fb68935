//! A round of the probe: a thread that observes its flag observes whether the announced work was
//! done.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::rendezvous::Rendezvous;

fn rendezvous() -> Rendezvous {
    Rendezvous {
        version_and_flags: 0,
        start: 0,
        length: 0,
        abort: 0,
        inside: AtomicU64::new(0),
        flag: AtomicU32::new(0),
        failed: AtomicU32::new(0),
    }
}

/// Runs a round: the companion answers it by `set`, and this thread checks.
fn round(set: fn(&Rendezvous)) {
    let shared = Arc::new(rendezvous());
    let theirs = Arc::clone(&shared);
    let other = thread::spawn(move || set(&theirs));
    assert_ne!(shared.was_done(1), Some(true), "it was not done");
    other.join().unwrap();
    assert_eq!(shared.was_done(1), Some(false));
}

#[test]
fn who_sees_the_flag_sees_that_nothing_was_done() {
    explore::all("rendezvous, 2 threads", || round(|shared| shared.set_flag(1, false)));
}

#[test]
fn a_flag_set_first_is_caught() {
    explore::expect_failure("rendezvous, the flag first", || {
        round(|shared| {
            shared.flag.store(1, Relaxed);
            shared.failed.store(1, Relaxed);
        });
    });
}
