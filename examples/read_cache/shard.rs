//! The entries of one part of the hashes, their order of eviction, and the hits that are not yet
//! applied to it.

use std::mem;
use std::sync::{Mutex, MutexGuard};

use hashbrown::HashTable;
use percid::Source;
use percid::id::SourceError;
use percid_sync::{ReadBuffer, RwLock};

use crate::segmented::Segmented;

/// New entries that are moved to the others together: a writer's fences are paid once for all.
const MAX_BATCH: usize = 32;

/// An entry among those that are read without the mutex.
pub(crate) struct Entry<K, V> {
    key: K,
    value: V,
    hash: u64,
    /// Its place in the order of eviction.
    place: u32,
}

/// A new entry, which is not yet among the others.
struct New<K, V> {
    key: K,
    value: V,
    hash: u64,
    /// `true` if it was found.
    hit: bool,
}

/// The part of the shard that its maintaining thread changes.
struct Upkeep<K, V> {
    new: Vec<New<K, V>>,
    order: Segmented,
    /// The number of entries outside `new`.
    settled: usize,
}

/// The values that an insertion has removed: the former one of the key, and evicted entries.
type Removed<K, V> = (Option<V>, Vec<Entry<K, V>>);

/// Entries whose hashes are of one part.
///
/// The thread that holds `upkeep` changes entries. A key is in the table or in `new`, not in both.
pub(crate) struct Shard<K, V> {
    table: RwLock<HashTable<Entry<K, V>>>,
    hits: ReadBuffer<u32>,
    upkeep: Mutex<Upkeep<K, V>>,
    /// The maximum of `Upkeep::settled`: with all of `new` but the last, the shard is full.
    max_settled: usize,
    batch: usize,
}

const NO_PANIC: &str = "no thread has panicked here";

impl<K: Eq, V: Clone> Shard<K, V> {
    pub(crate) fn new(source: Source, capacity: usize) -> Result<Shard<K, V>, SourceError> {
        // At most a sixteenth of the capacity is unused, on average.
        let batch = (capacity / 8).clamp(1, MAX_BATCH);
        let max_settled = capacity + 1 - batch;
        let upkeep = Upkeep { new: Vec::new(), order: Segmented::new(max_settled), settled: 0 };
        Ok(Shard {
            table: RwLock::with_source(source, HashTable::with_capacity(max_settled))?,
            hits: ReadBuffer::with_source(source)?,
            upkeep: Mutex::new(upkeep),
            max_settled,
            batch,
        })
    }

    /// Returns the value of a key.
    #[inline]
    pub(crate) fn get(&self, hash: u64, key: &K) -> Option<V> {
        self.get_settled(hash, key).or_else(|| self.get_new(hash, key))
    }

    #[inline]
    fn get_settled(&self, hash: u64, key: &K) -> Option<V> {
        let table = self.table.read().expect(NO_PANIC);
        let entry = table.find(hash, |entry| entry.key == *key)?;
        // If there is no room, the record is lost: others stand for it.
        self.hits.record(entry.place);
        Some(entry.value.clone())
    }

    fn get_new(&self, hash: u64, key: &K) -> Option<V> {
        let mut upkeep = self.lock();
        let new = upkeep.new.iter_mut().find(|new| new.key == *key);
        if let Some(new) = new {
            new.hit = true;
            return Some(new.value.clone());
        }
        // It may have been moved after `get_settled`.
        self.get_settled(hash, key)
    }

    /// Inserts an entry, or changes its value. Returns the values that were removed: their
    /// destructors, which are the caller's code, must run without the locks.
    pub(crate) fn insert(&self, hash: u64, key: K, value: V) -> Removed<K, V> {
        let mut upkeep = self.lock();
        if let Some(new) = upkeep.new.iter_mut().find(|new| new.key == key) {
            return (Some(mem::replace(&mut new.value, value)), Vec::new());
        }
        let is_key = |entry: &Entry<K, V>| entry.key == key;
        // The look comes first: an entry is seldom changed, and a writer stops the readers.
        if self.table.read().expect(NO_PANIC).find(hash, is_key).is_some() {
            let mut table = self.table.write().expect(NO_PANIC);
            let entry = table.find_mut(hash, is_key);
            return (entry.map(|entry| mem::replace(&mut entry.value, value)), Vec::new());
        }
        let new = New { key, value, hash, hit: false };
        if upkeep.new.len() + 1 < self.batch {
            upkeep.new.push(new);
            return (None, Vec::new());
        }
        (None, self.settle(&mut upkeep, new))
    }

    /// Applies the hits to the order, and moves the new entries and the last one to the others, in
    /// place of those that it returns.
    fn settle(&self, upkeep: &mut Upkeep<K, V>, last: New<K, V>) -> Vec<Entry<K, V>> {
        let Upkeep { new, order, settled } = upkeep;
        self.hits.drain(|place| order.hit(place));
        *settled += new.len() + 1;
        let excess = settled.saturating_sub(self.max_settled);
        *settled -= excess;
        let victims: Vec<_> = (0..excess).filter_map(|_| order.evict()).collect();
        let mut table = self.table.write().expect(NO_PANIC);
        let mut remove = |(place, hash)| {
            let entry = table.find_entry(hash, |entry| entry.place == place);
            entry.ok().map(|entry| entry.remove().0)
        };
        let evicted = victims.into_iter().filter_map(&mut remove).collect();
        for New { key, value, hash, hit } in new.drain(..).chain([last]) {
            let place = order.add(hash);
            if hit {
                order.hit(place);
            }
            let entry = Entry { key, value, hash, place };
            table.insert_unique(hash, entry, |entry| entry.hash);
        }
        evicted
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let upkeep = self.lock();
        let settled = self.table.read().expect(NO_PANIC).len();
        settled + upkeep.new.len()
    }

    fn lock(&self) -> MutexGuard<'_, Upkeep<K, V>> {
        self.upkeep.lock().expect(NO_PANIC)
    }
}
