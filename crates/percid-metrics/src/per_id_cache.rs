//! A cache for each ID, in front of a map that all CPUs share.
//!
//! A lookup that hits the cache accesses no memory that another CPU writes. Values are found by a
//! hash and compared by the caller. The lowest bits of its hash select the place of a value in the
//! table of an ID. The value is there or at one of the next few places. The table doubles when it
//! is half full, or when these places are all taken, up to [`MAX_PLACES`] places or until there is
//! no memory. After that, a newer value replaces an older one.

use percid::Local;

/// Number of places of the smallest table with a value, and of the largest one: powers of two.
const MIN_PLACES: usize = 16;
const MAX_PLACES: usize = 8192;

pub(crate) struct PerIdCache<V> {
    tables: Local<Table<V>>,
}

/// The table of an ID: each place has a value and its hash.
struct Table<V> {
    places: Box<[Option<(u64, V)>]>,
    /// Number of values that were inserted since the table has this size.
    filled: usize,
}

/// Number of places at which a value may be.
const NEAR: usize = 8;

impl<V: Send> PerIdCache<V> {
    pub(crate) fn new() -> PerIdCache<V> {
        PerIdCache { tables: Local::new(Table::new) }
    }

    /// Calls `use_it` with this CPU's value for `hash`, if `is_it` returns `true` for it.
    #[inline]
    pub(crate) fn find<R>(
        &self,
        hash: u64,
        is_it: impl FnOnce(&V) -> bool,
        use_it: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        let find = |table: &mut Table<V>| table.find(hash).filter(|value| is_it(value)).map(use_it);
        self.tables.try_with(find).flatten()
    }

    /// Inserts `value` for this CPU, if there is memory for it.
    pub(crate) fn insert(&self, hash: u64, value: V) {
        let replaced = self.tables.try_with(|table| table.insert(hash, value));
        // Dropped after the closure: the destructor of a value may call this cache.
        drop(replaced);
    }

    /// Removes the values for which `is_kept` returns `false`, on all CPUs. Waits for running
    /// lookups.
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
    /// Creates a table without places, and so without an allocation.
    fn new() -> Table<V> {
        Table { places: Box::default(), filled: 0 }
    }

    /// Returns the places where a value may be, the likeliest first. (In a table without places
    /// they are out of range.)
    #[inline(always)]
    fn near(&self, hash: u64) -> impl Iterator<Item = usize> + use<V> {
        let mask = self.places.len().wrapping_sub(1);
        (0..NEAR).map(move |step| (hash as usize).wrapping_add(step) & mask)
    }

    #[inline(always)]
    fn find(&self, hash: u64) -> Option<&V> {
        self.near(hash).find_map(|place| match self.places.get(place) {
            Some(Some((there, value))) if *there == hash => Some(value),
            _ => None,
        })
    }

    /// Inserts a value. Returns the replaced one, or the value itself if there is no memory for
    /// any.
    fn insert(&mut self, hash: u64, value: V) -> Option<(u64, V)> {
        // #[gamma::skip(arith, reason = "it ends before, and a bound is a bound")]
        let most = (MAX_PLACES / MIN_PLACES).ilog2();
        // #[gamma::skip(range, reason = "it ends before, and a bound is a bound")]
        for _ in 0..most {
            let is_full = self.filled * 2 >= self.places.len() || self.free(hash).is_none();
            if self.places.len() >= MAX_PLACES || !is_full || !self.double() {
                break;
            }
        }
        if self.places.is_empty() {
            return Some((hash, value));
        }
        self.filled += 1;
        let mask = self.places.len() - 1;
        // #[gamma::skip(expr, reason = "any place near does")]
        let place = self.free(hash).unwrap_or(hash as usize & mask);
        self.places[place].replace((hash, value))
    }

    /// Returns a place that is free, or that has a value of the same hash.
    fn free(&self, hash: u64) -> Option<usize> {
        let there =
            |place: &usize| self.places.get(*place).map(|it| it.as_ref().map(|(it, _)| *it));
        let is_same = |place: &usize| there(place) == Some(Some(hash));
        let is_free = |place: &usize| there(place) == Some(None);
        self.near(hash).find(is_same).or_else(|| self.near(hash).find(is_free))
    }

    /// Doubles the table. Drops values that find no place; they are looked up again. Returns
    /// `false` if there is no memory.
    fn double(&mut self) -> bool {
        let Some(larger) = empty((self.places.len() * 2).max(MIN_PLACES)) else { return false };
        let values = std::mem::replace(&mut self.places, larger);
        self.filled = 0;
        for (hash, value) in values.into_iter().flatten() {
            if let Some(place) = self.free(hash) {
                self.places[place] = Some((hash, value));
                self.filled += 1;
            }
        }
        true
    }
}

fn empty<V>(places: usize) -> Option<Box<[Option<V>]>> {
    let mut all = Vec::new();
    all.try_reserve_exact(places).ok()?;
    all.extend(std::iter::repeat_with(|| None).take(places));
    Some(all.into())
}

impl<V> std::fmt::Debug for PerIdCache<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerIdCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusals::refuse;

    fn table<V>() -> Table<V> {
        Table::new()
    }

    #[test]
    fn what_was_put_in_is_found() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut table = table();
        let hashes: Vec<u64> = (0..MAX_PLACES / 4).map(|_| random.u64(..)).collect();
        hashes.iter().for_each(|&hash| _ = table.insert(hash, hash));
        let found = hashes.iter().filter(|&&hash| table.find(hash) == Some(&hash)).count();
        assert!(found * 1000 >= hashes.len() * 995, "{found} of {}", hashes.len());
        assert!(table.places.len() <= MAX_PLACES);
    }

    #[test]
    fn a_full_table_keeps_what_came_last() {
        let mut table = table();
        for hash in 0..3 * MAX_PLACES {
            assert_eq!(table.insert(hash as u64, hash).is_some(), hash >= MAX_PLACES);
            assert_eq!(table.find(hash as u64), Some(&hash));
            // It is half full at most, and no larger than that requires.
            let places = (2 * hash + 1).next_power_of_two().clamp(MIN_PLACES, MAX_PLACES);
            assert_eq!(table.places.len(), places, "{hash}");
        }
    }

    #[test]
    fn without_memory_a_table_keeps_its_size() {
        let mut table = table();
        assert_eq!(refuse(0, || table.insert(0, 0)), Some(Some((0, 0))), "it has no place");
        (1..=8).for_each(|hash| _ = table.insert(hash, hash));
        assert_eq!(refuse(0, || table.insert(9, 9)), Some(None));
        assert!((1..=9).all(|hash| table.find(hash) == Some(&hash)));
        assert_eq!(table.places.len(), MIN_PLACES);
    }

    #[test]
    fn equal_hashes_take_one_place() {
        let mut table = table();
        assert_eq!((table.insert(5, 'a'), table.insert(5, 'b')), (None, Some((5, 'a'))));
        assert_eq!(table.find(5), Some(&'b'));
    }

    /// Eight values find a place, in a table that is half full by then. The ninth makes the table
    /// grow to the necessary size.
    #[test]
    fn hashes_that_want_one_place_find_others() {
        let mut table = table();
        let hashes = (0..9).map(|number| number * MAX_PLACES as u64 / 2);
        for (number, hash) in hashes.clone().enumerate() {
            assert_eq!(table.places.len(), if number == 0 { 0 } else { MIN_PLACES });
            table.insert(hash, hash);
        }
        assert_eq!(table.places.len(), MAX_PLACES);
        assert!(hashes.clone().all(|hash| table.find(hash) == Some(&hash)));
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
