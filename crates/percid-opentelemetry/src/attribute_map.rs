//! A map from sets of attributes to values.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use opentelemetry::KeyValue;

use crate::attributes;

pub(crate) struct AttributeMap<V> {
    hasher: RandomState,
    entries: HashTable<AttributeEntry<V>>,
}

struct AttributeEntry<V> {
    hash: u64,
    attributes: Arc<[KeyValue]>,
    value: V,
}

impl<V> AttributeMap<V> {
    pub(crate) fn new() -> AttributeMap<V> {
        AttributeMap { hasher: RandomState::default(), entries: HashTable::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the value of a set, in the form that [`attributes::canonical`] makes.
    pub(crate) fn get(&self, set: &[&KeyValue]) -> Option<&V> {
        let hash = attributes::hash(&self.hasher, set.iter().copied());
        self.entries.find(hash, |entry| entry.has(set)).map(|entry| &entry.value)
    }

    pub(crate) fn get_mut(&mut self, set: &[&KeyValue]) -> Option<&mut V> {
        let hash = attributes::hash(&self.hasher, set.iter().copied());
        self.entries.find_mut(hash, |entry| entry.has(set)).map(|entry| &mut entry.value)
    }

    /// Adds a set that is not in the map yet.
    pub(crate) fn add(&mut self, attributes: Arc<[KeyValue]>, value: V) {
        let hash = attributes::hash(&self.hasher, attributes.iter());
        self.entries
            .insert_unique(hash, AttributeEntry { hash, attributes, value }, |entry| entry.hash);
    }

    /// Returns all sets, unordered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<[KeyValue]>, &V)> {
        self.entries.iter().map(|entry| (&entry.attributes, &entry.value))
    }
}

impl<V> AttributeEntry<V> {
    fn has(&self, set: &[&KeyValue]) -> bool {
        attributes::are_same(self.attributes.iter(), set.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found() {
        let mut map = AttributeMap::new();
        for number in 0..100 {
            map.add(Arc::new([KeyValue::new("number", number)]), number);
        }
        for number in 0..200 {
            let set = KeyValue::new("number", number);
            assert_eq!(map.get(&[&set]).copied(), (number < 100).then_some(number));
        }
        *map.get_mut(&[&KeyValue::new("number", 7)]).expect("it is there") = -7;
        assert_eq!(map.get(&[&KeyValue::new("number", 7)]), Some(&-7));
        assert_eq!((map.len(), map.iter().count()), (100, 100));
    }
}
