//! The caches that are measured.

use crate::cache::Cache;

/// Shards of the example's cache. Readers of one shard do not slow each other down, so a few are
/// enough: an insertion seldom stops a reader.
pub(crate) const SHARDS: usize = 8;

/// Looks keys up in a cache, and inserts those that are missing. Returns the number of hits.
type LookUp = dyn Fn(&[u64]) -> usize + Send + Sync;

/// A cache from keys to the same numbers.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    look_up: Box<LookUp>,
}

impl Subject {
    /// Makes a subject of the two operations of a cache.
    fn new<C: Send + Sync + 'static>(
        name: &'static str,
        cache: C,
        get: impl Fn(&C, u64) -> Option<u64> + Send + Sync + 'static,
        insert: impl Fn(&C, u64) + Send + Sync + 'static,
    ) -> Subject {
        let look_up = move |keys: &[u64]| {
            let hit = |&&key: &&u64| match get(&cache, key) {
                Some(value) => {
                    assert_eq!(value, key, "{name} has another key's value");
                    true
                }
                None => {
                    insert(&cache, key);
                    false
                }
            };
            keys.iter().filter(hit).count()
        };
        Subject { name, look_up: Box::new(look_up) }
    }

    /// Looks the keys up, and inserts those that are missing. Returns the number of hits.
    pub(crate) fn look_up(&self, keys: &[u64]) -> usize {
        (self.look_up)(keys)
    }
}

/// Creates a cache of each kind.
pub(crate) fn all(capacity: usize) -> Vec<Subject> {
    let source = percid::init().source;
    let own = Cache::new(source, capacity, SHARDS).expect("the source in use");
    vec![
        Subject::new("percid", own, |own, key| own.get(&key), |own, key| own.insert(key, key)),
        #[cfg(feature = "sync-peers")]
        Subject::new(
            "moka",
            moka(capacity),
            |moka, key| moka.get(&key),
            |moka, key| moka.insert(key, key),
        ),
        #[cfg(feature = "sync-peers")]
        Subject::new(
            "quick_cache",
            quick_cache(capacity),
            |quick, key| quick.get(&key),
            |quick, key| quick.insert(key, key),
        ),
    ]
}

#[cfg(feature = "sync-peers")]
fn moka(capacity: usize) -> moka::sync::Cache<u64, u64, hashbrown::DefaultHashBuilder> {
    moka::sync::Cache::builder().max_capacity(capacity as u64).build_with_hasher(Default::default())
}

#[cfg(feature = "sync-peers")]
type QuickCache =
    quick_cache::sync::Cache<u64, u64, quick_cache::UnitWeighter, hashbrown::DefaultHashBuilder>;

#[cfg(feature = "sync-peers")]
fn quick_cache(capacity: usize) -> QuickCache {
    QuickCache::with(
        capacity,
        capacity as u64,
        quick_cache::UnitWeighter,
        Default::default(),
        Default::default(),
    )
}
