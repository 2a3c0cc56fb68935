//! The tests of the cache: its size and its values, while threads use it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::*;

const CAPACITY: usize = 100;
const KEYS: u64 = 150;
const THREADS: u64 = 3;

/// A key and its version.
type Value = (u64, u64);
type TestCache = Cache<u64, Value>;

fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

/// Numbers of breaches of the contract.
#[derive(Default, Debug, PartialEq)]
struct Breaches {
    too_many: usize,
    wrong: usize,
}

/// Each thread inserts rising versions of its own keys and reads all keys. An own key has the last
/// version, any other none that is older than the one seen before.
fn use_by_threads(cache: &TestCache, insert: impl Fn(u64, Value) + Sync) -> Breaches {
    const ROUNDS: u64 = 20_000;
    let (too_many, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let run = |thread: u64| {
        let mut seen = [0; KEYS as usize];
        for round in 1..=ROUNDS {
            // Each step is prime to the number of keys: every key, in an order of the thread's own.
            let key = round * (7 + 6 * thread) % KEYS;
            let own = key % THREADS == thread;
            if own {
                insert(key, (key, round));
                seen[key as usize] = round;
            }
            too_many.fetch_add(usize::from(cache.len() > CAPACITY), Relaxed);
            let Some((of, version)) = cache.get(&key) else { continue };
            let last = std::mem::replace(&mut seen[key as usize], version);
            let right = of == key && if own { version == last } else { version >= last };
            wrong.fetch_add(usize::from(!right), Relaxed);
        }
    };
    let run = &run;
    thread::scope(|scope| (0..THREADS).for_each(|thread| _ = scope.spawn(move || run(thread))));
    Breaches { too_many: too_many.into_inner(), wrong: wrong.into_inner() }
}

#[test]
fn values_are_right_and_the_capacity_is_kept() {
    for source in sources() {
        let cache = TestCache::new(source, CAPACITY, 4).expect("an available source");
        let breaches = use_by_threads(&cache, |key, value| cache.insert(key, value));
        assert_eq!(breaches, Breaches { too_many: 0, wrong: 0 }, "{source}");
        assert!(cache.len() > CAPACITY * 3 / 4, "{source}: {} entries", cache.len());
    }
}

#[test]
fn faults_are_found() {
    for source in sources() {
        let large = TestCache::new(source, CAPACITY * 2, 4).expect("an available source");
        let breaches = use_by_threads(&large, |key, value| large.insert(key, value));
        assert!(breaches.too_many > 0 && breaches.wrong == 0, "{source}: {breaches:?}");

        let stale = TestCache::new(source, CAPACITY, 4).expect("an available source");
        let breaches = use_by_threads(&stale, |key, value| {
            if stale.get(&key).is_none() {
                stale.insert(key, value);
            }
        });
        assert!(breaches.wrong > 0 && breaches.too_many == 0, "{source}: {breaches:?}");
    }
}

#[test]
fn every_capacity_is_exact_and_the_newest_entry_is_there() {
    for capacity in 1..=70 {
        let cache = TestCache::new(Source::Atomic, capacity, 1).expect("always available");
        for key in 0..500 {
            cache.insert(key, (key, 0));
            assert_eq!(cache.get(&key), Some((key, 0)));
            assert!(cache.len() <= capacity);
        }
        assert!(cache.len() + capacity / 8 >= capacity, "{} of {capacity}", cache.len());
    }
}

/// Hits reach the order through the buffer: what is read stays, though much more is inserted.
#[test]
fn entries_that_are_read_stay() {
    for source in sources() {
        let cache = TestCache::new(source, CAPACITY, 1).expect("an available source");
        (0..20).for_each(|key| cache.insert(key, (key, 0)));
        let mut lost = 0;
        for key in 1000..3000 {
            cache.insert(key, (key, 0));
            lost += usize::from(cache.get(&(key % 20)).is_none());
        }
        assert_eq!(lost, 0, "{source}");
    }
}
