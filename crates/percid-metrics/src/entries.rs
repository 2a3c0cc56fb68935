//! A hash map that splits into buckets of a bounded size.
//!
//! Its owner protects it with a lock. A thread that holds the lock visits at most [`FULL`] entries,
//! for any number of entries. A bucket has a range of places; a full bucket is split into two of
//! half the range. Copies of all entries are made bucket by bucket, in the order of places; each
//! bucket is copied under a lock of its own. Buckets are never joined, so a boundary between two
//! buckets stays. Therefore an entry that exists during the whole copy is copied exactly once. If
//! labels are removed and added again during the copy, at most one of their entries is copied.
//!
//! Entries with equal hashes stay in one bucket. Only a `Hash` that returns the same for different
//! labels produces many of them.

use std::fmt;
use std::sync::Arc;
#[cfg(test)]
use std::{cell::Cell, thread_local};

use hashbrown::HashTable;

/// Number of entries at which a bucket is split: as many as hashbrown puts into a table of 4096
/// slots.
const FULL: usize = 3584;

/// The error that there is no memory for another label set, for a list of all, or for their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no memory")
    }
}

impl std::error::Error for NoMemory {}

/// A label set and its metric.
pub(crate) struct MetricEntry<S, M> {
    pub(crate) hash: u64,
    pub(crate) labels: S,
    pub(crate) metric: M,
}

pub(crate) struct Entries<S, M> {
    /// The buckets in the order of their first places, which begin with 0. Empty before the first
    /// entry.
    buckets: Vec<Bucket<S, M>>,
    len: usize,
}

/// The entries whose places are at least `first` and below the next bucket's `first`.
struct Bucket<S, M> {
    first: u64,
    entries: HashTable<Arc<MetricEntry<S, M>>>,
}

/// Returns the place of a hash among buckets.
///
/// hashbrown finds slots by the lowest bits and compares the seven highest. Both must differ within
/// a bucket.
fn place(hash: u64) -> u64 {
    // #[gamma::skip(literal, reason = "other bits only make it slower")]
    hash.rotate_left(7)
}

impl<S, M> Entries<S, M> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn find(
        &self,
        hash: u64,
        is_it: impl Fn(&Arc<MetricEntry<S, M>>) -> bool,
    ) -> Option<&Arc<MetricEntry<S, M>>> {
        self.buckets.get(self.bucket_of(hash))?.entries.find(hash, |it| visited(it, &is_it))
    }

    pub(crate) fn remove(
        &mut self,
        hash: u64,
        is_it: impl Fn(&Arc<MetricEntry<S, M>>) -> bool,
    ) -> Option<Arc<MetricEntry<S, M>>> {
        let number = self.bucket_of(hash);
        let entries = &mut self.buckets.get_mut(number)?.entries;
        let found = entries.find_entry(hash, |it| visited(it, &is_it)).ok()?;
        self.len -= 1;
        Some(found.remove().0)
    }

    /// Reserves memory for an entry with this hash.
    pub(crate) fn reserve(&mut self, hash: u64) -> Result<(), NoMemory> {
        if self.buckets.is_empty() {
            // #[gamma::skip(literal.int_increment, reason = "more room does no harm")]
            self.buckets.try_reserve_exact(1).map_err(|_| NoMemory)?;
            self.buckets.push(Bucket { first: 0, entries: HashTable::new() });
        }
        let number = self.bucket_of(hash);
        if self.buckets[number].entries.len() >= FULL {
            self.split(number)?;
        }
        let number = self.bucket_of(hash);
        // #[gamma::skip(literal.int_increment, reason = "more room does no harm")]
        self.buckets[number].entries.try_reserve(1, hash_of).map_err(|_| NoMemory)
    }

    /// Inserts an entry that is not in the map yet. The caller must have reserved memory for it.
    pub(crate) fn insert(&mut self, entry: Arc<MetricEntry<S, M>>) {
        let number = self.bucket_of(entry.hash);
        self.buckets[number].entries.insert_unique(entry.hash, entry, hash_of);
        self.len += 1;
    }

    /// Appends the entries of the bucket that begins at `place`. Returns the first place of the
    /// next bucket, or `None` after the last bucket. The first bucket begins at 0.
    pub(crate) fn copy_bucket(
        &self,
        place: u64,
        all: &mut Vec<Arc<MetricEntry<S, M>>>,
    ) -> Result<Option<u64>, NoMemory> {
        let number = self.bucket_at(place);
        let Some(bucket) = self.buckets.get(number) else { return Ok(None) };
        all.try_reserve(bucket.entries.len()).map_err(|_| NoMemory)?;
        all.extend(bucket.entries.iter().map(|entry| visited(entry, Arc::clone)));
        Ok(self.buckets.get(number + 1).map(|next| next.first))
    }

    fn bucket_of(&self, hash: u64) -> usize {
        self.bucket_at(place(hash))
    }

    /// Returns the index of the bucket that contains this place, or 0 if there are no buckets.
    fn bucket_at(&self, place: u64) -> usize {
        self.buckets.partition_point(|bucket| bucket.first <= place).saturating_sub(1)
    }

    /// Splits a bucket in the middle of its range. A bucket whose range is one place is not split;
    /// it grows.
    fn split(&mut self, number: usize) -> Result<(), NoMemory> {
        let last = self.buckets.get(number + 1).map_or(u64::MAX, |next| next.first - 1);
        // #[gamma::skip(literal.int_increment, reason = "more room does no harm")]
        self.buckets.try_reserve(1).map_err(|_| NoMemory)?;
        let Bucket { first, entries } = &mut self.buckets[number];
        let others = last - *first;
        if others == 0 {
            return Ok(());
        }
        let middle = *first + others / 2 + 1;
        let mut upper = HashTable::new();
        upper.try_reserve(entries.len(), hash_of).map_err(|_| NoMemory)?;
        let is_upper =
            |entry: &mut Arc<MetricEntry<S, M>>| visited(entry, |_| place(entry.hash) >= middle);
        for entry in entries.extract_if(is_upper) {
            upper.insert_unique(entry.hash, entry, hash_of);
        }
        self.buckets.insert(number + 1, Bucket { first: middle, entries: upper });
        Ok(())
    }
}

/// Returns the hash of an entry, for a table that moves it.
fn hash_of<S, M>(entry: &Arc<MetricEntry<S, M>>) -> u64 {
    visited(entry, |entry| entry.hash)
}

impl<S, M> Default for Entries<S, M> {
    fn default() -> Self {
        Entries { buckets: Vec::new(), len: 0 }
    }
}

/// Calls `visit` with an entry. In tests, counts the visits under one hold of a lock.
#[inline(always)]
fn visited<E, R>(entry: &E, visit: impl FnOnce(&E) -> R) -> R {
    #[cfg(test)]
    VISITS.set(VISITS.get() + 1);
    visit(entry)
}

#[cfg(test)]
thread_local! {
    static VISITS: Cell<usize> = const { Cell::new(0) };
    static MOST_VISITS: Cell<usize> = const { Cell::new(0) };
}

/// Records that this thread has begun to hold the lock: the visit count restarts.
#[inline(always)]
pub(crate) fn hold_begins() {
    #[cfg(test)]
    MOST_VISITS.set(MOST_VISITS.get().max(VISITS.replace(0)));
}

/// Returns the maximum number of entries that this thread visits under one hold of a lock in
/// `work`.
#[cfg(test)]
pub(crate) fn most_visits(work: impl FnOnce()) -> usize {
    VISITS.set(0);
    MOST_VISITS.set(0);
    work();
    hold_begins();
    MOST_VISITS.get()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::refusals::refuse_each;

    fn insert(all: &mut Entries<u64, ()>, hash: u64, labels: u64) {
        all.reserve(hash).expect("memory");
        all.insert(Arc::new(MetricEntry { hash, labels, metric: () }));
        assert!(all.buckets.len() <= 65 + all.len() / (FULL / 4), "it splits what is not full");
    }

    /// Entries are added and removed between two buckets; the remaining ones are copied once.
    #[test]
    fn what_stays_is_copied_once_whatever_comes_and_goes() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut all = Entries::default();
        let hashes: Vec<u64> = (0..20_000).map(|_| random.u64(..)).collect();
        hashes.iter().for_each(|&hash| insert(&mut all, hash, hash));
        let (stay, go) = hashes.split_at(10_000);
        let mut go = go.iter();
        let (mut copied, mut next, mut holds) = (Vec::new(), Some(0), 0);
        while let Some(place) = next {
            next = all.copy_bucket(place, &mut copied).expect("memory");
            assert!(next.is_none_or(|next| next > place), "it ends");
            holds += 1;
            for &hash in go.by_ref().take(500) {
                assert!(all.remove(hash, |it| it.labels == hash).is_some());
                // It is added again at the same place.
                insert(&mut all, hash, hash);
            }
            (0..2000).map(|_| random.u64(..)).for_each(|hash| insert(&mut all, hash, hash));
        }
        assert!(holds > 5, "{holds}");
        let labels: BTreeSet<u64> = copied.iter().map(|entry| entry.labels).collect();
        assert_eq!(labels.len(), copied.len(), "none twice");
        assert!(stay.iter().all(|hash| labels.contains(hash)), "none is missing");
        assert_eq!(all.len(), 20_000 + 2000 * holds);
    }

    #[test]
    fn without_memory_it_is_told_and_nothing_is_lost() {
        let mut all = Entries::default();
        let mut refusals = 0;
        for labels in 0..2 * FULL as u64 {
            let hash = labels.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            refusals +=
                refuse_each(|| all.reserve(hash), |result| assert_eq!(result, Err(NoMemory)));
            all.insert(Arc::new(MetricEntry { hash, labels, metric: () }));
            assert_eq!(all.buckets.len() > 1, labels >= FULL as u64);
        }
        // A table that grows to 4096 slots, the list of two tables, and the second of them.
        assert!(refusals > 12 && all.buckets.len() > 1, "{refusals}");
        let copy = |place| all.copy_bucket(place, &mut Vec::new());
        let copied = |result| assert_eq!(result, Err(NoMemory));
        assert!(all.buckets.iter().all(|it| refuse_each(|| copy(it.first), copied) == 1));
        assert_eq!(all.buckets.iter().map(|it| it.entries.len()).sum::<usize>(), 2 * FULL);
    }

    /// A bucket ends where the next one begins.
    #[test]
    fn entries_at_the_edges_of_buckets_are_found_and_removed() {
        let mut all = Entries::default();
        assert!(all.find(7, |_| true).is_none() && all.remove(7, |_| true).is_none());
        (0..=FULL as u64).for_each(|labels| insert(&mut all, labels.rotate_left(40), labels));
        let middle = all.buckets[1].first;
        for place in [0, middle - 1, middle, middle + 1, u64::MAX] {
            let (hash, labels) = (place.rotate_right(7), u64::MAX);
            insert(&mut all, hash, labels);
            assert!(all.find(hash, |it| it.labels == labels).is_some(), "{place:#x}");
            assert!(all.remove(hash, |it| it.labels == labels).is_some(), "{place:#x}");
            assert!(all.remove(hash, |it| it.labels == labels).is_none(), "{place:#x}");
        }
        assert_eq!(all.len(), FULL + 1);
    }

    /// A user's own hash may return the same for all.
    #[test]
    fn entries_of_one_hash_are_kept() {
        for hash in [0, 1, u64::MAX] {
            let mut all = Entries::default();
            (0..FULL as u64 + 100).for_each(|labels| insert(&mut all, hash, labels));
            assert!(all.find(hash, |it| it.labels == FULL as u64 + 99).is_some());
            assert_eq!(all.buckets.len(), 65);
            let (mut copied, mut next) = (Vec::new(), Some(0));
            for _ in 0..65 {
                next = all.copy_bucket(next.expect("another"), &mut copied).expect("memory");
            }
            assert_eq!((copied.len(), next), (FULL + 100, None));
        }
    }
}
