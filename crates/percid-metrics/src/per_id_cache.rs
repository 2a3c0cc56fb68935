//! What was found last, for each ID: in front of a map that all CPUs share.
//!
//! A lookup that finds it there touches no memory that another CPU writes. Values are found by a hash and
//! compared by the caller. The table of an ID has a place for each of the lowest bits of the hashes; it
//! doubles when two values want the same place, up to [`MOST`] places, and from then on the newer one
//! stays.

use percid::Local;

/// Places of a new table, and of the largest: powers of two.
const FEWEST: usize = 16;
const MOST: usize = 4096;

pub(crate) struct PerIdCache<V> {
    tables: Local<Table<V>>,
}

/// The places of an ID, each with the hash of what is there.
struct Table<V> {
    places: Box<[Option<(u64, V)>]>,
    /// Made together, so that what one ID gets does not lie between what others get.
    spare: Vec<V>,
}

/// How many values are made together.
const TOGETHER: usize = 16;

impl<V: Send> PerIdCache<V> {
    pub(crate) fn new() -> PerIdCache<V> {
        PerIdCache { tables: Local::new(Table::new) }
    }

    /// Hands what this CPU has for `hash` to `use_it`, if `is_it` says so.
    #[inline]
    pub(crate) fn find<R>(
        &self,
        hash: u64,
        is_it: impl FnOnce(&V) -> bool,
        use_it: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        self.tables.with(|table| match table.place(hash) {
            Some((there, value)) if *there == hash && is_it(value) => Some(use_it(value)),
            _ => None,
        })
    }

    /// A value for this CPU, by `make`, which is called for several at once.
    pub(crate) fn spare(&self, make: impl Fn() -> V) -> V {
        let spare = self.tables.with(|table| {
            if table.spare.is_empty() {
                table.spare.extend(std::iter::repeat_with(&make).take(TOGETHER));
            }
            table.spare.pop()
        });
        spare.unwrap_or_else(make)
    }

    /// Has this CPU find `value` from now on.
    pub(crate) fn insert(&self, hash: u64, value: V) {
        let replaced = self.tables.with(|table| table.insert(hash, value));
        // Dropped behind the closure: what it owns may have a destructor that comes here.
        drop(replaced);
    }

    /// Forgets what `is_kept` does not want on any CPU. Waits for lookups that are under way.
    pub(crate) fn retain(&self, mut is_kept: impl FnMut(&V) -> bool) {
        let mut forgotten = Vec::new();
        self.tables.for_each(|table| {
            for place in &mut table.places {
                forgotten.extend(place.take_if(|(_, value)| !is_kept(value)));
            }
        });
    }
}

impl<V> Table<V> {
    fn new() -> Table<V> {
        Table { places: empty(FEWEST), spare: Vec::new() }
    }

    fn place(&self, hash: u64) -> Option<&(u64, V)> {
        self.places[hash as usize & (self.places.len() - 1)].as_ref()
    }

    /// Returns what had the place.
    fn insert(&mut self, hash: u64, value: V) -> Option<(u64, V)> {
        while self.place(hash).is_some_and(|(there, _)| *there != hash) && self.places.len() < MOST
        {
            let larger = empty(self.places.len() * 2);
            let places = std::mem::replace(&mut self.places, larger);
            let mask = self.places.len() - 1;
            for (there, value) in places.into_iter().flatten() {
                self.places[there as usize & mask] = Some((there, value));
            }
        }
        let mask = self.places.len() - 1;
        self.places[hash as usize & mask].replace((hash, value))
    }
}

fn empty<V>(places: usize) -> Box<[Option<V>]> {
    std::iter::repeat_with(|| None).take(places).collect()
}

impl<V> std::fmt::Debug for PerIdCache<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerIdCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_grows_until_everything_has_a_place() {
        let mut table = Table::new();
        for hash in 0..MOST as u64 {
            assert!(table.insert(hash, hash).is_none());
        }
        assert!((0..MOST as u64).all(|hash| table.place(hash) == Some(&(hash, hash))));
        assert_eq!(table.insert(MOST as u64, 7), Some((0, 0)), "the newer one stays");
        assert_eq!(table.places.len(), MOST);
    }

    #[test]
    fn equal_hashes_do_not_make_a_table_grow() {
        let mut table = Table::new();
        (0..100).for_each(|value| _ = table.insert(5, value));
        assert_eq!((table.places.len(), table.place(5)), (FEWEST, Some(&(5, 99))));
    }

    #[test]
    fn what_is_not_wanted_is_forgotten_everywhere() {
        let cache = PerIdCache::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..64).for_each(|hash| cache.insert(hash, hash)));
            }
        });
        cache.retain(|value| value % 2 == 0);
        let find = |hash: u64| cache.find(hash, |_| true, |value| *value);
        for _ in 0..100 {
            assert!(
                (0..64).all(|hash| find(hash).is_none_or(|found| found == hash && found % 2 == 0))
            );
        }
    }
}
