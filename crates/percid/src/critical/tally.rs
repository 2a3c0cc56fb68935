//! The layout of the memory that counts a value: a journal, two sums, and the counts.
//!
//! A value changes two words, a count and the sum, and a section commits with one store. So it
//! commits to a *journal*. That word names the current sum of the two, the bucket that was counted
//! last, and that bucket's count. The next section writes the count itself. That number was
//! computed before, so it may be written any number of times. The new sum is written to the unused
//! one of the two, and means nothing before the commit.
//!
//! All offsets are those from the start of a shard of [`PerId`](crate::PerId), whose state comes
//! first.

/// The journal: the number of the sum (1 bit), that of the array of counts (1 bit, 0 in the value of
/// an ID), the bucket that was counted last, as the distance of its count from the first one, and
/// from bit [`COUNT_SHIFT`] on the count.
pub(crate) const JOURNAL: usize = 8;
/// The two sums.
pub(crate) const SUMS: usize = 16;
/// The counts. The one of the journal's bucket may be out of date.
pub(crate) const COUNTS: usize = 32;

/// The bit at which the count begins in a journal.
pub(crate) const COUNT_SHIFT: u32 = 14;
/// Number of buckets that a journal can name.
pub(crate) const BUCKETS: usize = 1 << 11;
/// The bits of a journal that name the bucket.
pub(crate) const PLACES: u64 = (BUCKETS as u64 - 1) << 3;

/// The bit of a journal that names the array. Sections store 0.
const ARRAY_SHIFT: u32 = 1;

/// The value of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Journal(pub(crate) u64);

impl Journal {
    /// Creates a journal.
    pub(crate) fn new(sum: usize, array: usize, bucket: usize, count: u64) -> Journal {
        let array = (array as u64) << ARRAY_SHIFT;
        Journal(sum as u64 | array | place(bucket) as u64 | count << COUNT_SHIFT)
    }

    /// The bits of a count.
    pub(crate) const COUNTS: u64 = u64::MAX >> COUNT_SHIFT;

    /// Returns the number of the current sum.
    pub(crate) fn sum(self) -> usize {
        (self.0 & 1) as usize
    }

    /// Returns the number of the array that has the counts.
    pub(crate) fn array(self) -> usize {
        (self.0 >> ARRAY_SHIFT & 1) as usize
    }

    /// Returns the bucket that was counted last.
    pub(crate) fn bucket(self) -> usize {
        ((self.0 & PLACES) >> 3) as usize
    }

    /// Returns the count of that bucket, modulo 2^50.
    pub(crate) fn count(self) -> u64 {
        self.0 >> COUNT_SHIFT
    }
}

/// Returns a bucket in the form that a journal and a section use.
#[inline(always)]
pub(crate) const fn place(bucket: usize) -> usize {
    bucket << 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_says_what_was_written_to_it() {
        let last = BUCKETS - 1;
        let journal = Journal(77 << COUNT_SHIFT | place(last) as u64 | 1);
        assert_eq!((journal.sum(), journal.bucket(), journal.count()), (1, last, 77));
        assert_eq!((journal.array(), Journal::new(1, 0, last, 77)), (0, journal));
        let other = Journal::new(0, 1, 0, 3);
        assert_eq!((other.sum(), other.array(), other.bucket(), other.count()), (0, 1, 0, 3));
        let empty = Journal(0);
        assert_eq!((empty.sum(), empty.array(), empty.bucket(), empty.count()), (0, 0, 0, 0));
        assert_eq!(place(last) as u64 & !PLACES, 0);
        const { assert!(PLACES < 1 << COUNT_SHIFT) };
    }
}
