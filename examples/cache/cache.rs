//! The cache: pages by key, read by any number of threads.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use percid::{Counter, Histogram, Pool};

use crate::page::Page;
use crate::retired::Retired;
use crate::shard::Shard;

/// log2 of the number of shards: many more than CPUs, so that two threads seldom meet at a lock.
const SHARDS_LOG2: u32 = 8;

/// A cache of pages.
pub(crate) struct Cache<'p> {
    pages: &'p Pool<Page>,
    shards: Box<[Aligned<'p>]>,
    pub(crate) retired: Retired<'p>,
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    /// The times of lookups, in nanoseconds.
    pub(crate) hit_times: Histogram,
    pub(crate) miss_times: Histogram,
    /// Pages that came from the pool and were not blank.
    pub(crate) unwiped: Counter,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Aligned<'p>(Mutex<Shard<'p>>);

impl<'p> Cache<'p> {
    /// Makes an empty cache for at least `capacity` pages, which it takes from `pages`.
    pub(crate) fn new(pages: &'p Pool<Page>, capacity: usize) -> Cache<'p> {
        let capacity = capacity.div_ceil(1 << SHARDS_LOG2);
        let shard = |_| Aligned(Mutex::new(Shard::new(capacity)));
        Cache {
            pages,
            shards: (0..1 << SHARDS_LOG2).map(shard).collect(),
            retired: Retired::new(),
            hits: Counter::new(),
            misses: Counter::new(),
            hit_times: Histogram::new(),
            miss_times: Histogram::new(),
            unwiped: Counter::new(),
        }
    }

    /// Lends the page of a key to `f`, from the cache or freshly loaded.
    pub(crate) fn read<R>(&self, key: u64, f: impl FnOnce(&Page) -> R) -> R {
        let start = Instant::now();
        let mut shard = self.shard(key);
        if let Some(page) = shard.get(key) {
            let result = f(page);
            drop(shard);
            self.hits.add(1);
            self.hit_times.record(start.elapsed().as_nanos() as u64);
            return result;
        }
        drop(shard);
        let result = self.load(key, f);
        self.misses.add(1);
        self.miss_times.record(start.elapsed().as_nanos() as u64);
        result
    }

    /// Loads a page while no thread is kept waiting: two threads may load the same one.
    fn load<R>(&self, key: u64, f: impl FnOnce(&Page) -> R) -> R {
        let mut page = self.pages.get();
        if !page.is_blank() {
            self.unwiped.add(1);
        }
        page.load(key);
        let result = f(&page);
        let surplus = self.shard(key).insert(key, page);
        if let Some(surplus) = surplus {
            self.retired.add(surplus);
        }
        result
    }

    /// Returns the number of pages.
    pub(crate) fn len(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|it| it.0.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, Shard<'p>> {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shard = &self.shards[(hash >> (64 - SHARDS_LOG2)) as usize];
        shard.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
