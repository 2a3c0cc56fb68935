use std::sync::TryLockError;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use percid::Source;

use super::*;
use crate::fence;

/// Longer than any wait that must end.
const LONG: Duration = Duration::from_secs(600);

fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

/// Waits until so many readers and writers wait.
fn wait_for_queue<T>(lock: &RwLock<T>, lengths: (u32, u32)) {
    while lock.raw().queue().lengths() != lengths {
        thread::yield_now();
    }
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    for source in sources() {
        let lock = RwLock::with_source(source, 5).expect("an available source");
        let (one, two) = (lock.read().unwrap(), lock.try_read().unwrap());
        assert_eq!((*one, *two, lock.raw().reader_count()), (5, 5, 2));
        assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
        assert!(lock.write_timeout(Duration::ZERO).is_err());
        drop((one, two));
        let mut writing = lock.try_write().expect("nobody has it");
        *writing += 1;
        assert!(matches!(lock.try_read(), Err(TryLockError::WouldBlock)));
        assert!(lock.read_timeout(Duration::ZERO).is_err());
        assert!(lock.try_write().is_err());
        drop(writing);
        assert_eq!(lock.into_inner().unwrap(), 6, "{source}");
    }
}

#[test]
fn a_writer_that_gives_up_opens_the_lock() {
    let lock = RwLock::new(0);
    let reading = lock.read().unwrap();
    assert!(lock.write_timeout(Duration::ZERO).is_err());
    assert!(!lock.raw().is_closed() && lock.try_read().is_ok());
    drop(reading);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_writer_waits_for_the_last_reader() {
    let lock = RwLock::new(0);
    let reading = lock.read().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| *lock.write_timeout(LONG).unwrap() += 1);
        while !lock.raw().is_closed() {
            thread::yield_now();
        }
        assert_eq!(*reading, 0);
        drop(reading);
    });
    assert_eq!(*lock.read().unwrap(), 1);
}

/// A reader that comes while one writer has the lock and another waits is admitted in between.
#[test]
fn readers_and_writers_take_turns() {
    let lock = RwLock::new(0);
    let first = lock.write().unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| *lock.write().unwrap() += 1);
        wait_for_queue(&lock, (0, 1));
        let reader = scope.spawn(|| {
            let reading = lock.read_timeout(LONG).unwrap();
            let seen = *reading;
            // The second writer has its turn, and waits for this reader.
            assert!(lock.raw().is_closed());
            seen
        });
        wait_for_queue(&lock, (1, 1));
        drop(first);
        assert_eq!(reader.join().expect("no panic"), 0, "the reader came before");
        second.join().expect("no panic");
    });
    assert_eq!(*lock.read().unwrap(), 1);
}

#[test]
fn a_turn_that_is_handed_over_needs_no_fence() {
    let lock = RwLock::new(0);
    assert_eq!(fence::count(|| drop(lock.write().unwrap())), 1);
    let first = lock.write().unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| fence::count(|| *lock.write().unwrap() += 1));
        wait_for_queue(&lock, (0, 1));
        drop(first);
        assert_eq!(second.join().expect("no panic"), 0);
    });
    assert_eq!(fence::count(|| drop(lock.write().unwrap())), 1);
    assert_eq!(fence::count(|| drop(lock.read().unwrap())), 0);
}

/// The lock is held until both have given up, however long that takes.
#[test]
fn who_gives_up_is_not_waited_for() {
    let lock = RwLock::new(0);
    let first = lock.write().unwrap();
    let soon = Duration::from_millis(1);
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.write_timeout(soon).is_err()));
        scope.spawn(|| assert!(lock.read_timeout(soon).is_err()));
    });
    assert_eq!(lock.raw().queue().lengths(), (0, 0));
    drop(first);
    assert!(!lock.raw().is_closed());
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_writer_without_fence_does_not_enter() {
    let lock = RwLock::new(0);
    fence::refused(|| {
        assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
        assert_eq!(lock.raw().write(None), Err(WriteError::FenceRefused));
        let panics = std::panic::catch_unwind(|| drop(lock.write()));
        assert!(panics.is_err());
    });
    assert!(!lock.is_poisoned(), "it had no access");
    assert!(lock.try_read().is_ok());
    assert_eq!(fence::count(|| drop(lock.write().unwrap())), 1, "the next one fences again");
}

#[test]
fn a_writer_that_panics_poisons() {
    let mut lock = RwLock::new(5);
    let panics = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let _writing = lock.write().unwrap();
            panic!("on purpose");
        });
        writer.join()
    });
    assert!(panics.is_err() && lock.is_poisoned());
    assert!(matches!(lock.try_read(), Err(TryLockError::Poisoned(_))));
    assert!(matches!(lock.try_write(), Err(TryLockError::Poisoned(_))));
    assert_eq!(*lock.read().unwrap_err().into_inner(), 5);
    assert_eq!(*lock.write().unwrap_err().into_inner(), 5);
    assert!(format!("{lock:?}").contains("data: 5, poisoned: true"));
    assert!(lock.get_mut().is_err());
    lock.clear_poison();
    assert_eq!(*lock.read().unwrap(), 5);
    let panics = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let _reading = lock.read().unwrap();
            panic!("on purpose");
        });
        reader.join()
    });
    assert!(panics.is_err() && !lock.is_poisoned(), "readers break nothing");
    assert!(RwLock::from(5).into_inner().is_ok());
}

#[test]
fn locks_and_errors_are_shown() {
    let lock: RwLock<u32> = RwLock::default();
    let writing = lock.write().unwrap();
    assert_eq!(format!("{writing:?}"), "0");
    assert!(format!("{lock:?}").contains("<locked>"));
    drop(writing);
    assert_eq!(format!("{:?}", lock.read().unwrap()), "0");
    let raw = RawRwLock::default();
    assert_eq!(format!("{raw:?}"), "RawRwLock { readers: 0, closed: false, .. }");
    assert!(WriteError::TimedOut.to_string().contains("time"));
    assert!(WriteError::FenceRefused.to_string().contains("membarrier"));
}

/// The data of the stress: two numbers that a writer changes one after the other, with a third
/// value between, and a box that it replaces.
struct Torn(u64, Box<u64>, u64);

/// Readers and writers of all kinds, until each has done its share.
#[test]
fn nothing_torn_or_freed_is_read() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 20_000 };
    for source in sources() {
        let lock = RwLock::with_source(source, Torn(0, Box::new(0), 0)).expect("available");
        let (written, stop) = (AtomicU32::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let readers: Vec<_> = (0..3)
                .map(|kind| {
                    let (lock, stop) = (&lock, &stop);
                    scope.spawn(move || read_until(lock, kind, stop))
                })
                .collect();
            let writers: Vec<_> = (0..2)
                .map(|kind| {
                    let (lock, written) = (&lock, &written);
                    scope.spawn(move || write_rounds(lock, kind, ROUNDS / 20, written))
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
            stop.store(true, Release);
            let reads: u64 = readers.into_iter().map(|reader| reader.join().expect("none")).sum();
            assert!(reads > 0, "{source}");
        });
        let data = lock.into_inner().unwrap();
        assert_eq!(data.0, u64::from(written.into_inner()), "{source}");
    }
}

fn read_until(lock: &RwLock<Torn>, kind: u32, stop: &AtomicBool) -> u64 {
    let mut reads = 0;
    while !stop.load(Acquire) || reads == 0 {
        let data = match kind {
            0 => Some(lock.read().unwrap()),
            1 => lock.try_read().ok(),
            _ => lock.read_timeout(Duration::from_micros(50)).ok(),
        };
        let Some(data) = data else { continue };
        assert_eq!((data.0, *data.1), (data.2, data.2));
        reads += 1;
    }
    reads
}

fn write_rounds(lock: &RwLock<Torn>, kind: u32, rounds: u32, written: &AtomicU32) {
    let mut round = 0;
    while round < rounds {
        let data = match kind {
            0 => Some(lock.write().unwrap()),
            _ => lock.write_timeout(Duration::from_micros(200)).ok(),
        };
        let Some(mut data) = data else { continue };
        data.0 += 1;
        // A reader of the old box would read a poisoned value.
        *data.1 = u64::MAX;
        let new = Box::new(data.0);
        drop(std::mem::replace(&mut data.1, new));
        data.2 = data.0;
        written.fetch_add(1, Relaxed);
        round += 1;
    }
}

/// Every writer gets the lock while readers never pause, and every reader while writers never do.
#[test]
fn nobody_starves() {
    const ROUNDS: u32 = if cfg!(miri) { 5 } else { 200 };
    let lock = RwLock::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    drop(lock.read().unwrap());
                }
            });
        }
        (0..ROUNDS).for_each(|_| *lock.write().unwrap() += 1);
        stop.store(true, Relaxed);
    });
    stop.store(false, Relaxed);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    *lock.write().unwrap() += 1;
                }
            });
        }
        (0..ROUNDS).for_each(|_| drop(lock.read().unwrap()));
        stop.store(true, Relaxed);
    });
    assert!(lock.read_timeout(LONG).is_ok());
}

#[test]
fn a_deadline_beyond_the_clock_is_none() {
    let lock = RwLock::new(0);
    assert!(lock.write_timeout(Duration::MAX).is_ok());
    assert!(lock.raw().read(Some(Instant::now())));
}
