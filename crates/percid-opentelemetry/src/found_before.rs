//! A cache of attributes for each ID, in front of a map that all CPUs share.
//!
//! A hit accesses no word that another CPU reads or writes. Attributes are stored in the given
//! order, so that a lookup need not sort them. Another order of the same set is another entry.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use opentelemetry::KeyValue;
use percid::Local;

use crate::attributes;

pub(crate) struct FoundBefore<V> {
    hasher: RandomState,
    tables: Local<HashTable<Found<V>>>,
    /// Number of entries at which an ID's table is cleared.
    most: usize,
}

struct Found<V> {
    hash: u64,
    given: Box<[KeyValue]>,
    value: V,
}

impl<V: Send> FoundBefore<V> {
    pub(crate) fn new(most: usize) -> FoundBefore<V> {
        let tables: Local<_> = Local::new(HashTable::new);
        FoundBefore { hasher: RandomState::default(), tables, most }
    }

    /// Calls `use_it` with the value that this CPU has cached. Returns `None` if there is none.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        attributes: &[KeyValue],
        use_it: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        let hash = attributes::hash(&self.hasher, attributes);
        let is_it = |found: &Found<V>| {
            // #[gamma::skip(logical.and_remove_left, reason = "a short cut")]
            found.hash == hash && attributes::are_same(found.given.iter(), attributes.iter())
        };
        self.tables.with(|table| table.find(hash, is_it).map(|found| use_it(&found.value)))
    }

    /// Caches `value` for this CPU.
    pub(crate) fn insert(&self, attributes: &[KeyValue], value: V) {
        let hash = attributes::hash(&self.hasher, attributes);
        let found = Found { hash, given: attributes.into(), value };
        let forgotten = self.tables.with(|table| {
            let is_full = table.len() >= self.most;
            let forgotten = is_full.then(|| std::mem::take(table));
            // The thread may have migrated since its lookup. If this CPU has the entry already, it
            // is there twice, and the first one is found.
            table.insert_unique(hash, found, |found| found.hash);
            forgotten
        });
        // Dropped after the closure: while the closure runs, other threads with this ID use another
        // table.
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_found_again_in_the_same_order_only() {
        let found = FoundBefore::new(1000);
        let [a, b] = [KeyValue::new("a", 1), KeyValue::new("b", 2)];
        // Another CPU may have another table.
        let is_found = (0..1000).any(|_| {
            found.insert(&[a.clone(), b.clone()], 'x');
            found.with(&[a.clone(), b.clone()], |value| *value) == Some('x')
        });
        assert!(is_found);
        assert_eq!(found.with(&[b.clone(), a.clone()], |value| *value), None);
        assert_eq!(found.with(&[a], |value| *value), None);
    }

    #[test]
    fn a_full_table_forgets() {
        let found = FoundBefore::new(10);
        let mut most = 0;
        for number in 0..1000 {
            found.insert(&[KeyValue::new("number", number)], number);
            found.tables.for_each(|table| most = most.max(table.len()));
        }
        assert_eq!(most, 10);
    }
}
