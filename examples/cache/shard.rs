//! A part of the cache: a map from keys to pages that evicts by second chance.
//!
//! The pages stand in a circle. The hand goes round and evicts the first page that was not used
//! since it last came by (F. J. Corbató, "A paging experiment with the Multics system", 1969).

use std::collections::HashMap;

use percid::pool::Pooled;

use crate::page::Page;

/// A map that is locked by a thread that uses it.
pub(crate) struct Shard<'p> {
    /// The position of a key's page in the circle.
    places: HashMap<u64, usize>,
    circle: Vec<Slot<'p>>,
    hand: usize,
    capacity: usize,
}

struct Slot<'p> {
    key: u64,
    page: Pooled<'p, Page>,
    used: bool,
}

impl<'p> Shard<'p> {
    /// Makes an empty shard that keeps up to `capacity` pages.
    pub(crate) fn new(capacity: usize) -> Shard<'p> {
        Shard { places: HashMap::new(), circle: Vec::new(), hand: 0, capacity }
    }

    /// Returns the page of a key, which counts as used from now on.
    pub(crate) fn get(&mut self, key: u64) -> Option<&Page> {
        let slot = &mut self.circle[*self.places.get(&key)?];
        slot.used = true;
        Some(&slot.page)
    }

    /// Keeps a page, and returns the one that must leave for it: an evicted one, or `page` itself
    /// if another thread has loaded the same since.
    pub(crate) fn insert(&mut self, key: u64, page: Pooled<'p, Page>) -> Option<Pooled<'p, Page>> {
        if self.places.contains_key(&key) {
            return Some(page);
        }
        let slot = Slot { key, page, used: false };
        if self.circle.len() < self.capacity {
            self.places.insert(key, self.circle.len());
            self.circle.push(slot);
            return None;
        }
        let place = self.unused();
        let evicted = std::mem::replace(&mut self.circle[place], slot);
        self.places.remove(&evicted.key);
        self.places.insert(key, place);
        Some(evicted.page)
    }

    /// Returns the number of pages.
    pub(crate) fn len(&self) -> usize {
        self.circle.len()
    }

    /// Moves the hand to a page that was not used since the last pass of the hand, and past it.
    fn unused(&mut self) -> usize {
        loop {
            let place = self.hand;
            self.hand = (place + 1) % self.circle.len();
            if !std::mem::take(&mut self.circle[place].used) {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use percid::Pool;

    use super::*;

    fn page(pool: &Pool<Page>, key: u64) -> Pooled<'_, Page> {
        let mut page = pool.get();
        page.load(key);
        page
    }

    #[test]
    fn a_page_that_was_used_gets_a_second_chance() {
        let pool: Pool<Page> = Pool::new(Page::blank, 8);
        let mut shard = Shard::new(3);
        assert!((0..3).all(|key| shard.insert(key, page(&pool, key)).is_none()));
        assert!(shard.get(0).is_some_and(|page| page.is_of(0)));
        for (new, evicted) in [(3, 1), (4, 2), (5, 0), (6, 3)] {
            let gone = shard.insert(new, page(&pool, new)).expect("the shard is full");
            assert!(gone.is_of(evicted), "{new}");
            assert!(shard.get(evicted).is_none(), "{new}");
        }
        assert_eq!(shard.len(), 3);
    }

    #[test]
    fn a_page_that_is_there_already_is_given_back() {
        let pool: Pool<Page> = Pool::new(Page::blank, 8);
        let mut shard = Shard::new(3);
        assert!(shard.insert(7, page(&pool, 7)).is_none());
        assert!(shard.insert(7, page(&pool, 7)).is_some());
        assert_eq!(shard.len(), 1);
    }
}
