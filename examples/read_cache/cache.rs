//! The cache: shards by hash.

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;
use percid::Source;
use percid::id::SourceError;

use crate::shard::Shard;

/// A cache that never has more entries than its capacity.
pub(crate) struct Cache<K, V> {
    shards: Box<[Shard<K, V>]>,
    hasher: DefaultHashBuilder,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// Creates a cache of so many entries in so many shards, which must be a power of two.
    pub(crate) fn new(source: Source, capacity: usize, shards: usize) -> Result<Self, SourceError> {
        assert!(shards.is_power_of_two() && capacity >= shards, "an entry for each shard");
        let of_shard = |shard| (capacity + shard) / shards;
        let shards = (0..shards).map(|shard| Shard::new(source, of_shard(shard)));
        Ok(Cache { shards: shards.collect::<Result<_, _>>()?, hasher: Default::default() })
    }

    /// Returns the value of a key.
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).get(hash, key)
    }

    /// Inserts an entry, or changes its value.
    pub(crate) fn insert(&self, key: K, value: V) {
        let hash = self.hasher.hash_one(&key);
        drop(self.shard(hash).insert(hash, key, value));
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Shard<K, V> {
        // The table uses the lowest and the highest bits.
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
