//! The lock of a local's shard if no section takes it: takers and a visitor never hold it together.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use loom::thread;

use crate::explore;
use crate::lock::{Lock, NONE, READY};

/// A shard: loom checks that its value is never used by two.
struct Shard {
    lock: Lock,
    value: UnsafeCell<u32>,
}

impl Shard {
    fn new() -> Shard {
        let lock = Lock { state: AtomicI64::new(READY), closed: AtomicU64::new(0) };
        Shard { lock, value: UnsafeCell::new(0) }
    }

    fn add(&self) {
        // SAFETY: that no other thread has the value is what is checked.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }

    /// Runs a closure on the shard; returns `true` if it got the shard.
    fn with(&self, try_take: fn(&Lock) -> bool) -> bool {
        let taken = try_take(&self.lock);
        if taken {
            self.add();
            self.lock.release(READY);
        }
        taken
    }

    fn visit(&self) {
        self.lock.close();
        assert!(self.lock.take_closed(|_| false));
        self.add();
        self.lock.release(READY);
        self.lock.open();
    }

    /// Does the same as `visit`, and removes the value; returns `true` if there was one.
    fn drain(&self) -> bool {
        self.lock.close();
        let taken = self.lock.take_closed(|_| false);
        if taken {
            self.add();
            self.lock.release(NONE);
        }
        self.lock.open();
        taken
    }
}

fn takers_and_a_visitor(takers: usize, try_take: fn(&Lock) -> bool) {
    let shard = Arc::new(Shard::new());
    let takers: Vec<_> = (0..takers)
        .map(|_| {
            let shard = Arc::clone(&shard);
            thread::spawn(move || u32::from(shard.with(try_take)))
        })
        .collect();
    shard.visit();
    let taken: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    // SAFETY: all threads have ended.
    shard.value.with(|value| assert_eq!(unsafe { *value }, taken + 1));
    assert_eq!(shard.lock.state(), READY);
}

#[test]
fn a_visitor_has_a_shard_alone() {
    explore::all("lock, a taker and a visitor", || {
        takers_and_a_visitor(1, |lock| lock.try_take(READY));
    });
    explore::bounded(3, "lock, two takers and a visitor", || {
        takers_and_a_visitor(2, |lock| lock.try_take(READY));
    });
}

/// Another thread that must release the shard restores the state that it found: never a value that
/// was removed.
#[test]
fn a_drained_copy_stays_without_a_value() {
    explore::all("lock, a taker and a drain", || {
        let shard = Arc::new(Shard::new());
        let theirs = Arc::clone(&shard);
        let taker = thread::spawn(move || theirs.with(|lock| lock.try_take(READY)));
        assert!(shard.drain());
        taker.join().unwrap();
        assert_eq!(shard.lock.state(), NONE);
    });
}

#[test]
fn a_drain_that_only_finds_the_lock_free_is_caught() {
    explore::expect_failure("lock, a drain without an exchange", || {
        let shard = Arc::new(Shard::new());
        let theirs = Arc::clone(&shard);
        let taker = thread::spawn(move || theirs.with(|lock| lock.try_take(READY)));
        shard.lock.close();
        while shard.lock.state() != READY {
            thread::yield_now();
        }
        shard.lock.release(NONE);
        shard.lock.open();
        taker.join().unwrap();
        assert_eq!(shard.lock.state(), NONE);
    });
}

#[test]
fn taking_without_a_second_look_is_caught() {
    explore::expect_failure("lock, taken without looking again", || {
        takers_and_a_visitor(1, |lock| {
            let closed = lock.is_closed();
            !closed && lock.state.compare_exchange(READY, 77, Relaxed, Relaxed).is_ok()
        });
    });
}

#[test]
fn a_copy_without_a_value_is_passed() {
    explore::all("lock, no value", || {
        let lock = Lock { state: AtomicI64::new(NONE), closed: AtomicU64::new(0) };
        lock.close();
        assert!(!lock.take_closed(|_| false));
    });
}

/// Closes a shard and finds its lock free, while `take` runs. A thread that took the lock for good
/// has released it by then, or the visitor observes that it holds it.
fn a_visitor_comes(take: fn(&Lock) -> bool) {
    let shard = Arc::new((Shard::new(), AtomicU64::new(0)));
    let theirs = Arc::clone(&shard);
    let taker = thread::spawn(move || {
        let taken = take(&theirs.0.lock);
        if taken {
            theirs.1.store(1, Relaxed);
            theirs.0.lock.release(READY);
        }
        taken
    });
    shard.0.lock.close();
    let found_free = shard.0.lock.state.load(Acquire) == READY;
    let was_there = shard.1.load(Relaxed) == 1;
    let taken = taker.join().unwrap();
    assert!(!(found_free && taken && !was_there), "overtaken by who came later");
}

#[test]
fn a_visitor_is_not_overtaken_and_needs_both_barriers() {
    explore::all("lock, a taker comes with a visitor", || {
        a_visitor_comes(|lock| lock.try_take(READY));
    });
    explore::expect_failure("lock, a taker without a barrier", || {
        a_visitor_comes(|lock| {
            !lock.is_closed()
                && lock.state.compare_exchange(READY, 77, Acquire, Relaxed).is_ok()
                && (!lock.is_closed() || {
                    lock.release(READY);
                    false
                })
        });
    });
}

/// Looks at the lock of a closed shard, while `take` comes.
fn a_closed_shard(take: fn(&Lock) -> bool) {
    let lock = Arc::new(Lock { state: AtomicI64::new(READY), closed: AtomicU64::new(1) });
    let theirs = Arc::clone(&lock);
    let taker = thread::spawn(move || assert!(!take(&theirs)));
    assert_eq!(lock.state(), READY, "kept from the visitor");
    taker.join().unwrap();
}

#[test]
fn who_finds_a_shard_closed_leaves_its_lock_alone() {
    explore::all("lock, a taker at a closed shard", || {
        a_closed_shard(|lock| lock.try_take(READY));
    });
    explore::expect_failure("lock, a taker that looks too late", || {
        a_closed_shard(|lock| {
            let taken = lock.state.compare_exchange(READY, 77, Acquire, Relaxed).is_ok();
            if taken {
                lock.release(READY);
            }
            false
        });
    });
}

/// Explores a drain of a shard after its fence, and a section that begins by then: it needs no
/// exchange.
fn a_section_and_a_drain(section: fn(&Lock) -> bool) {
    let lock = Arc::new(Lock { state: AtomicI64::new(READY), closed: AtomicU64::new(1) });
    let theirs = Arc::clone(&lock);
    let section = thread::spawn(move || assert!(!section(&theirs), "the value is gone"));
    assert!(lock.take_closed(|_| false));
    lock.release(NONE);
    lock.open();
    section.join().unwrap();
}

#[test]
fn a_section_that_finds_the_shard_open_again_finds_no_value() {
    explore::all("lock, a section and a drain", || {
        a_section_and_a_drain(|lock| {
            lock.closed.load(Acquire) == 0 && lock.state.load(Relaxed) == READY
        });
    });
    explore::expect_failure("lock, a section that looks at the state first", || {
        a_section_and_a_drain(|lock| {
            lock.state.load(Relaxed) == READY && lock.closed.load(Acquire) == 0
        });
    });
}

/// If there is no value yet, a taker that finds the shard closed must not create one.
#[test]
fn who_gives_a_lock_back_puts_back_what_was_there() {
    explore::all("lock, a taker without a value and a drain", || {
        let lock = Arc::new(Lock { state: AtomicI64::new(NONE), closed: AtomicU64::new(0) });
        let theirs = Arc::clone(&lock);
        let taker = thread::spawn(move || {
            if theirs.try_take(NONE) {
                theirs.release(NONE);
            }
        });
        lock.close();
        taker.join().unwrap();
        assert_eq!(lock.state(), NONE, "there is no value");
    });
}

/// A visitor takes a thread that lives for one that does not.
#[test]
fn who_is_given_up_too_early_keeps_the_value_to_itself() {
    explore::all("lock, a holder that is given up", || {
        let shard = Arc::new(Shard::new());
        let theirs = Arc::clone(&shard);
        let taker = thread::spawn(move || theirs.with(|lock| lock.try_take(READY)));
        shard.lock.close();
        if shard.lock.take_closed(|_| true) {
            shard.add();
            shard.lock.release(READY);
        }
        shard.lock.open();
        taker.join().unwrap();
    });
}

#[test]
fn a_holder_that_is_gone_is_given_up_once() {
    explore::all("lock, a holder that is gone", || {
        let lock = Lock { state: AtomicI64::new(77), closed: AtomicU64::new(0) };
        lock.close();
        assert!(!lock.take_closed(|_| true));
        assert!(!lock.take_closed(|_| panic!("it is known to be gone")));
        lock.open();
        assert!(!lock.try_take(READY) && !lock.try_take(NONE));
        // It was not: its release makes up for it.
        lock.release(READY);
        assert!(lock.take_closed(|_| panic!("nobody is waited for")));
    });
}

#[test]
fn who_gives_back_at_the_last_moment_is_not_given_up() {
    explore::all("lock, a holder that comes back", || {
        let lock = Lock { state: AtomicI64::new(77), closed: AtomicU64::new(0) };
        lock.close();
        assert!(lock.take_closed(|_| {
            lock.release(READY);
            true
        }));
    });
}
