//! The values of a series' labels, in one allocation.
//!
//! Each value is followed by a byte that never occurs in UTF-8. So two lists of the same length are
//! equal if and only if their bytes are. A lookup compares values without concatenating them.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::error::LabelError;

/// The byte after each value.
const END: u8 = 0xff;

/// Values of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelValues(Box<[u8]>);

/// Values to look up. Their hash is that of [`LabelValues`].
pub(super) struct Sought<I>(pub(super) I);

impl Ord for LabelValues {
    fn cmp(&self, other: &Self) -> Ordering {
        self.split().cmp(other.split())
    }
}

impl PartialOrd for LabelValues {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for LabelValues {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.split().for_each(|value| hash_value(value, state));
    }
}

impl<V: AsRef<[u8]>, I: Iterator<Item = V> + Clone> Hash for Sought<I> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.clone().for_each(|value| hash_value(value.as_ref(), state));
    }
}

#[inline(always)]
fn hash_value(value: &[u8], state: &mut impl Hasher) {
    state.write(value);
    state.write_u8(END);
}

impl LabelValues {
    /// Copies `expected` values.
    ///
    /// # Errors
    ///
    /// If the number of values is not `expected`, one is not UTF-8, or there is no memory.
    pub(super) fn new<V: AsRef<[u8]>>(
        values: impl Iterator<Item = V> + Clone,
        expected: usize,
    ) -> Result<LabelValues, LabelError> {
        let given = values.clone().count();
        if given != expected {
            return Err(LabelError::WrongNumber { expected, given });
        }
        let bytes = values.clone().map(|value| value.as_ref().len() + 1).sum();
        let mut all = Vec::new();
        all.try_reserve_exact(bytes).map_err(|_| LabelError::NoMemory)?;
        for value in values {
            let value = std::str::from_utf8(value.as_ref()).map_err(|_| LabelError::NotUtf8)?;
            all.extend_from_slice(value.as_bytes());
            all.push(END);
        }
        Ok(LabelValues(all.into()))
    }

    /// Returns `value`, `times` times.
    pub(super) fn repeated(value: &str, times: usize) -> LabelValues {
        let once = value.bytes().chain([END]);
        LabelValues((0..times).flat_map(|_| once.clone()).collect())
    }

    /// Returns `true` if these are the values. `expected` is their number.
    #[inline]
    pub(super) fn are<V: AsRef<[u8]>>(
        &self,
        values: impl Iterator<Item = V>,
        expected: usize,
    ) -> bool {
        let (mut rest, mut given) = (&*self.0, 0);
        for value in values {
            let behind = rest.strip_prefix(value.as_ref());
            let Some(behind) = behind.and_then(|rest| rest.strip_prefix(&[END])) else {
                return false;
            };
            (rest, given) = (behind, given + 1);
        }
        // Each of them ends where one of these does. The count excludes a value that is not UTF-8:
        // it may look like several.
        given == expected
    }

    /// Returns the number of bytes, with one more for each value.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Returns the values in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        // Only UTF-8 was accepted.
        self.split().map(|value| std::str::from_utf8(value).unwrap_or_default())
    }

    fn split(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split_inclusive(|&byte| byte == END).map(|value| &value[..value.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use foldhash::fast::RandomState;

    use super::*;
    use crate::refusals::refuse_each;

    const LISTS: [&[&str]; 8] =
        [&[], &[""], &["", ""], &["a"], &["a", ""], &["", "a"], &["ab", "c"], &["a", "bc"]];

    fn values(list: &[&str]) -> LabelValues {
        LabelValues::new(list.iter(), list.len()).expect("they are good")
    }

    #[test]
    fn lists_are_the_same_only_if_every_value_is() {
        for one in LISTS {
            assert!(values(one).iter().eq(one.iter().copied()), "{one:?}");
            for other in LISTS {
                assert_eq!(
                    values(one).are(other.iter(), one.len()),
                    one == other,
                    "{one:?} {other:?}"
                );
                assert_eq!(values(one) == values(other), one == other, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn what_is_shorter_comes_first() {
        assert!(values(&["a", "z"]) < values(&["ab", "a"]));
        assert!(values(&["a", "b"]) < values(&["a", "c"]));
    }

    #[test]
    fn what_is_looked_for_has_the_hash_of_what_is_there() {
        let hasher = RandomState::default();
        for list in LISTS {
            assert_eq!(hasher.hash_one(values(list)), hasher.hash_one(Sought(list.iter())));
        }
        assert_eq!(LabelValues::repeated("x", 3), values(&["x", "x", "x"]));
    }

    #[test]
    fn what_is_not_utf8_or_has_no_memory_is_nobodys_value() {
        let hostile: [&[u8]; 1] = [b"a\xffb"];
        assert!(!values(&["a", "b"]).are(hostile.iter(), 2));
        assert_eq!(LabelValues::new(hostile.iter(), 1), Err(LabelError::NotUtf8));
        let wrong = LabelError::WrongNumber { expected: 2, given: 1 };
        assert_eq!(LabelValues::new(hostile.iter(), 2), Err(wrong));
        let refused = refuse_each(
            || LabelValues::new(["a", "b"].iter(), 2),
            |result| assert_eq!(result, Err(LabelError::NoMemory)),
        );
        assert_eq!(refused, 1);
    }
}
