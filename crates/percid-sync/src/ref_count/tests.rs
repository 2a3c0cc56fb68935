use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::thread;

use percid::Source;

use super::*;
use crate::fence;

fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

#[test]
fn one_reference_is_the_last() {
    for source in sources() {
        let references = RefCount::with_source(source).expect("an available source");
        (0..100).for_each(|_| references.get());
        assert_eq!((0..90).filter(|_| references.put()).count(), 0, "{source}");
        assert!(references.try_get());
        assert_eq!((references.kill(), references.is_dead()), (Ok(false), true), "{source}");
        assert_eq!(references.kill(), Err(KillError::Dead));
        assert!(!references.try_get());
        references.get();
        let last: Vec<bool> = (0..12).map(|_| references.put()).collect();
        assert_eq!(last.iter().position(|&last| last), Some(11), "{source}");
    }
}

#[test]
fn a_dead_object_lives_again() {
    let references = RefCount::default();
    references.get();
    for _ in 0..3 {
        assert_eq!(references.kill(), Ok(false));
        references.get();
        assert!(references.revive() && !references.revive());
        (0..10).for_each(|_| references.get());
        assert_eq!((0..11).filter(|_| references.put()).count(), 0);
    }
    assert!(!references.put());
    assert_eq!(format!("{references:?}"), "RefCount { dead: false, .. }");
    assert_eq!(references.kill(), Ok(true));
}

#[test]
fn without_the_fence_it_stays_alive() {
    let references = RefCount::new();
    (0..3).for_each(|_| references.get());
    fence::refused(|| assert_eq!(references.kill(), Err(KillError::FenceRefused)));
    assert!(!references.is_dead() && !references.put() && references.try_get());
    assert_eq!(references.kill(), Ok(false));
    let last: Vec<bool> = (0..3).map(|_| references.put()).collect();
    assert_eq!(last, [false, false, true]);
    assert!(KillError::FenceRefused.to_string().contains("membarrier"));
    assert!(KillError::Dead.to_string().contains("dead"));
}

/// References that are taken, given to other threads and given back while the object is killed and
/// revived: exactly one is the last.
#[test]
fn exactly_one_is_the_last() {
    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 200 };
    const STEPS: usize = if cfg!(miri) { 10 } else { 200 };
    for source in sources() {
        for round in 0..ROUNDS {
            let references = RefCount::with_source(source).expect("an available source");
            let last = AtomicUsize::new(0);
            let end = |is_last: bool| {
                last.fetch_add(usize::from(is_last), AcqRel);
            };
            (0..THREADS).for_each(|_| references.get());
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        for step in 0..STEPS {
                            references.get();
                            if step % 16 == 15 && references.try_get() {
                                end(references.put());
                            }
                            end(references.put());
                        }
                        end(references.put());
                    });
                }
                if round % 2 == 0 {
                    references.get();
                    end(references.kill().expect("alive"));
                    assert!(references.revive());
                    end(references.put());
                }
                end(references.kill().expect("alive"));
            });
            assert_eq!(last.into_inner(), 1, "{source}");
        }
    }
}

/// A value that counts its drops, and reports its use after one.
struct Counted<'c>(&'c AtomicUsize, AtomicUsize);

impl Counted<'_> {
    fn check(&self) {
        assert_eq!(self.1.load(Relaxed), 7, "a dropped value is used");
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.check();
        self.1.store(0, Relaxed);
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_value_is_dropped_once_after_its_last_use() {
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 200 };
    for source in sources() {
        let dropped = AtomicUsize::new(0);
        for round in 0..ROUNDS {
            let value = Counted(&dropped, AtomicUsize::new(7));
            let owner = Owner::with_source(source, value).expect("an available source");
            thread::scope(|scope| {
                for thread in 0..3 {
                    let mut shared = owner.share();
                    scope.spawn(move || {
                        for _ in 0..20 * thread + round % 7 {
                            let other = shared.clone();
                            other.check();
                            shared = other;
                        }
                        shared.check();
                    });
                }
                drop(owner);
            });
            assert_eq!(dropped.load(Relaxed), round + 1, "{source}");
        }
    }
}

#[test]
fn references_are_shown_and_compared() {
    let owner = Owner::new(5);
    let (one, two) = (owner.share(), Owner::new(5).share());
    assert_eq!(format!("{owner:?} {one:?} {two:?}"), "5 5 5");
    assert!(Arc::ptr_eq(&one, &one.clone()) && !Arc::ptr_eq(&one, &two));
}
