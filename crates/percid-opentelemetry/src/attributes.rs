//! Sets of attributes: their equality, and the canonical form without order and duplicates.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;
use opentelemetry::{Array, KeyValue, Value};

/// Returns the hash of attributes in this order. Attributes that [`are_same`] have the same hash.
#[inline]
pub(crate) fn hash<'a>(
    hasher: &RandomState,
    attributes: impl IntoIterator<Item = &'a KeyValue>,
) -> u64 {
    let mut state = hasher.build_hasher();
    attributes.into_iter().for_each(|attribute| attribute.hash(&mut state));
    state.finish()
}

/// Returns `true` if these are the same attributes in the same order.
#[inline]
pub(crate) fn are_same<'a>(
    some: impl ExactSizeIterator<Item = &'a KeyValue>,
    others: impl ExactSizeIterator<Item = &'a KeyValue>,
) -> bool {
    some.len() == others.len() && some.zip(others).all(|(one, other)| is_same(one, other))
}

#[inline]
fn is_same(one: &KeyValue, other: &KeyValue) -> bool {
    is_same_text(one.key.as_str(), other.key.as_str()) && is_same_value(&one.value, &other.value)
}

/// Floats are the same if their bits are: a NaN that equals nothing would have a new series each
/// time.
#[inline]
fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => is_same_text(one.as_str(), other.as_str()),
        (Value::F64(one), Value::F64(other)) => one.to_bits() == other.to_bits(),
        (Value::Array(Array::F64(one)), Value::Array(Array::F64(other))) => {
            let bits = |floats: &[f64]| floats.iter().map(|float| float.to_bits()).collect();
            let (one, other): (Vec<u64>, Vec<u64>) = (bits(one), bits(other));
            one == other
        }
        (one, other) => one == other,
    }
}

/// Constants and shared strings have the same address: then the stored copy need not be read.
#[inline(always)]
fn is_same_text(one: &str, other: &str) -> bool {
    // #[gamma::skip(logical.or_remove_left, reason = "a short cut")]
    std::ptr::eq(one, other) || one == other
}

/// Returns the set of the attributes: sorted by key, with the last one of each key.
pub(crate) fn canonical(attributes: &[KeyValue]) -> Vec<&KeyValue> {
    let mut sorted: Vec<&KeyValue> = attributes.iter().collect();
    sorted.sort_by(|one, other| one.key.cmp(&other.key));
    sorted.dedup_by(|later, earlier| {
        let is_again = later.key == earlier.key;
        if is_again {
            *earlier = *later;
        }
        is_again
    });
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &[KeyValue], other: &[KeyValue]) -> bool {
        let (one, other) = (canonical(one), canonical(other));
        let is_same = are_same(one.iter().copied(), other.iter().copied());
        let hasher = RandomState::default();
        let hashes = [one, other].map(|set| hash(&hasher, set));
        assert!(!is_same || hashes[0] == hashes[1], "the same have the same hash");
        is_same
    }

    #[test]
    fn order_does_not_matter_and_the_last_of_duplicates_does() {
        let [a, b, c] = [KeyValue::new("a", 1), KeyValue::new("b", "x"), KeyValue::new("a", true)];
        assert!(same(&[a.clone(), b.clone()], &[b.clone(), a.clone()]));
        assert!(same(&[a.clone(), b.clone(), c.clone()], &[c.clone(), b.clone()]));
        assert!(!same(&[c.clone(), b.clone(), a], &[c, b]));
    }

    #[test]
    fn attributes_with_another_key_or_text_are_others() {
        assert!(!same(&[KeyValue::new("a", 1)], &[KeyValue::new("b", 1)]));
        assert!(!same(&[KeyValue::new("a", "x")], &[KeyValue::new("a", "y")]));
    }

    #[test]
    fn values_of_other_types_are_others() {
        let values = [
            Value::I64(1),
            Value::F64(1.0),
            Value::Bool(true),
            Value::String("1".into()),
            Value::F64(f64::NAN),
            Value::Array(Array::F64(vec![f64::NAN])),
            Value::Array(Array::I64(vec![1])),
            Value::Array(Array::F64(vec![])),
        ];
        for (at, one) in values.iter().enumerate() {
            for (other_at, other) in values.iter().enumerate() {
                let set = |value: &Value| [KeyValue::new("key", value.clone())];
                assert_eq!(same(&set(one), &set(other)), at == other_at, "{one:?} {other:?}");
            }
        }
    }
}
