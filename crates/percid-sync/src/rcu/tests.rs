use std::sync::Barrier;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;

use percid::Source;

use super::*;
use crate::fence;

fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

#[test]
fn guards_nest_and_end_anywhere() {
    for source in sources() {
        let domain = Domain::with_source(source).expect("an available source");
        let (outer, inner) = (domain.read(), domain.read());
        assert_eq!(domain.reader_count(), 2, "{source}");
        drop(outer);
        thread::scope(|scope| {
            scope.spawn(move || drop(inner));
        });
        assert_eq!(domain.reader_count(), 0, "{source}");
        assert_eq!(domain.synchronize(), Ok(()));
    }
}

#[test]
fn a_grace_period_waits_for_the_readers_before_it_only() {
    let domain = Domain::new();
    let (early, ended) = (domain.read(), AtomicBool::new(false));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            domain.synchronize().expect("it may fence");
            ended.store(true, Release);
        });
        // Guards come and go all the time; those of both phases.
        for _ in 0..100 {
            drop((domain.read(), domain.read()));
            thread::yield_now();
            assert!(!ended.load(Acquire), "a reader is inside");
        }
        // A reader that comes after the phase has changed is not waited for.
        while domain.grace().parity() == 0 {
            thread::yield_now();
        }
        let late = domain.read();
        drop(early);
        waiting.join().expect("no panic");
        drop(late);
    });
}

/// A guard that was made in the phase before is waited for as well.
#[test]
fn readers_of_both_phases_are_waited_for() {
    let domain = Domain::new();
    for _ in 0..3 {
        let reading = domain.read();
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                domain.synchronize().expect("it may fence");
                ended.store(true, Release);
            });
            (0..50).for_each(|_| thread::yield_now());
            assert!(!ended.load(Acquire));
            drop(reading);
        });
    }
}

/// Threads that ask while a grace period runs share the next one.
#[test]
fn fences_are_shared() {
    let domain = Domain::new();
    let reading = domain.read();
    let fences = AtomicU64::new(0);
    thread::scope(|scope| {
        let ask = || {
            let own = fence::count(|| domain.synchronize().expect("it may fence"));
            fences.fetch_add(own, Relaxed);
        };
        scope.spawn(ask);
        while !domain.grace().running().0 {
            thread::yield_now();
        }
        (0..8).for_each(|_| {
            scope.spawn(ask);
        });
        while domain.grace().running().1 < 8 {
            thread::yield_now();
        }
        drop(reading);
    });
    assert_eq!(fences.into_inner(), 2);
}

#[test]
fn functions_wait_for_readers_and_their_number_is_limited() {
    static RUN: AtomicUsize = AtomicUsize::new(0);
    let count = || {
        RUN.fetch_add(1, Relaxed);
    };
    let domain = Domain::with_limit(3);
    let reading = domain.read();
    (0..3).for_each(|_| domain.defer(count));
    assert_eq!((domain.deferred_count(), RUN.load(Relaxed)), (3, 0));
    let full = domain.try_defer(count).expect_err("three wait");
    assert!(full.to_string().contains("synchronize") && format!("{full:?}") == "Full(..)");
    drop(reading);
    domain.defer(count);
    assert_eq!((domain.deferred_count(), RUN.load(Relaxed)), (0, 4), "back-pressure");
    domain.defer(count);
    assert_eq!((domain.flush(), domain.flush(), RUN.load(Relaxed)), (Ok(1), Ok(0), 5));
    domain.defer(count);
    assert_eq!(format!("{domain:?}"), "Domain { readers: 0, deferred: 1, .. }");
    drop(domain);
    assert_eq!(RUN.load(Relaxed), 6);
}

#[test]
fn without_the_fence_nothing_is_freed() {
    let domain = Domain::with_limit(1);
    let cell = RcuCell::new(&domain, 1);
    fence::refused(|| {
        assert_eq!(domain.synchronize(), Err(NotFenced));
        assert_eq!(cell.replace(2), Err(NotFenced));
        cell.store(3);
        cell.store(4);
        assert_eq!((domain.deferred_count(), domain.flush()), (2, Err(NotFenced)));
    });
    assert_eq!(*cell.load(&domain.read()), 4);
    assert_eq!(domain.flush(), Ok(2), "later it works");
    assert!(Domain::default().synchronize().is_ok());
}

#[test]
#[should_panic(expected = "the guard of another domain")]
fn a_guard_of_another_domain_is_refused() {
    let (own, other) = (Domain::new(), Domain::new());
    let cell = RcuCell::new(&own, 1);
    cell.load(&other.read());
}

#[test]
fn values_are_replaced_and_dropped_once() {
    struct Counted<'c>(&'c AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let domain = Domain::new();
    let cell = RcuCell::new(&domain, Counted(&DROPPED));
    drop(cell.replace(Counted(&DROPPED)));
    assert_eq!(DROPPED.load(Relaxed), 1);
    cell.store(Counted(&DROPPED));
    assert_eq!((domain.flush(), DROPPED.load(Relaxed)), (Ok(1), 2));
    drop(cell);
    assert_eq!(DROPPED.load(Relaxed), 3);
    assert_eq!(format!("{:?}", RcuCell::new(&domain, 5)), "RcuCell(5)");
}

/// A value that reports its use after it was dropped.
struct Poisoned(u64, AtomicU64);

impl Poisoned {
    fn new(n: u64) -> Poisoned {
        Poisoned(n, AtomicU64::new(n))
    }

    fn check(&self) -> u64 {
        assert_eq!(self.0, self.1.load(Relaxed), "a dropped value is read");
        self.0
    }
}

impl Drop for Poisoned {
    fn drop(&mut self) {
        self.1.store(u64::MAX, Relaxed);
    }
}

/// Readers and threads that replace the value in each way; guards end on other threads.
#[test]
fn nothing_torn_or_freed_is_read() {
    const ROUNDS: u64 = if cfg!(miri) { 10 } else { 1000 };
    for source in sources() {
        let domain = Domain::with_source(source).expect("an available source");
        let cell = RcuCell::new(&domain, Poisoned::new(0));
        let (stop, begin) = (AtomicBool::new(false), Barrier::new(4));
        thread::scope(|scope| {
            let replacers = [
                scope.spawn(|| {
                    begin.wait();
                    (0..ROUNDS).for_each(|n| {
                        cell.replace(Poisoned::new(n)).expect("it may fence").check();
                    });
                }),
                scope.spawn(|| {
                    begin.wait();
                    (0..2 * ROUNDS).for_each(|n| cell.store(Poisoned::new(n)));
                }),
            ];
            for _ in 0..2 {
                scope.spawn(|| {
                    begin.wait();
                    while !stop.load(Acquire) {
                        let reading = domain.read();
                        let value = cell.load(&reading);
                        let first = value.check();
                        assert_eq!(
                            cell.load(&domain.read()).check() < 2 * ROUNDS,
                            first < 2 * ROUNDS
                        );
                        value.check();
                        thread::scope(|inner| {
                            if first.is_multiple_of(64) {
                                inner.spawn(move || drop(reading));
                            }
                        });
                    }
                });
            }
            replacers.into_iter().for_each(|replacer| replacer.join().expect("no panic"));
            stop.store(true, Release);
        });
        domain.flush().expect("it may fence");
        assert_eq!((domain.reader_count(), domain.deferred_count()), (0, 0), "{source}");
    }
}
