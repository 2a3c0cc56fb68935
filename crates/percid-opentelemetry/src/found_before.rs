//! What was found for attributes before, for each ID: in front of a map that all CPUs share.
//!
//! Who finds it here writes no word that another CPU reads or writes. The attributes stand as they were
//! given, so that they need not be sorted to be found: another order of the same set is another entry.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use opentelemetry::KeyValue;
use percid::Local;

use crate::attributes;

pub(crate) struct FoundBefore<V> {
    hasher: RandomState,
    tables: Local<HashTable<Found<V>>>,
    /// An ID that has found so much forgets it all.
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

    /// Hands what this CPU has found before to `use_it`; `None` if there is nothing.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        attributes: &[KeyValue],
        use_it: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        let hash = attributes::hash(&self.hasher, attributes);
        let is_it = |found: &Found<V>| {
            found.hash == hash && attributes::are_same(found.given.iter(), attributes.iter())
        };
        self.tables.with(|table| table.find(hash, is_it).map(|found| use_it(&found.value)))
    }

    /// Has this CPU find `value` from now on.
    pub(crate) fn insert(&self, attributes: &[KeyValue], value: V) {
        let hash = attributes::hash(&self.hasher, attributes);
        let found = Found { hash, given: attributes.into(), value };
        let forgotten = self.tables.with(|table| {
            let is_full = table.len() >= self.most;
            let forgotten = is_full.then(|| std::mem::take(table));
            // The thread may have come from another CPU since it looked: what is there already is
            // there twice then, and the first is found.
            table.insert_unique(hash, found, |found| found.hash);
            forgotten
        });
        // Behind the closure: while it runs, others that come with this ID use another table.
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
        for number in 0..1000 {
            found.insert(&[KeyValue::new("number", number)], number);
        }
        found.tables.for_each(|table| assert!(table.len() <= 10));
    }
}
