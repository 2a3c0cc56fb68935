//! The value of an ID: a journal, two sums, and a count for every bucket (see
//! [`critical::tally`](crate::critical::tally)). A value that belongs to no ID has a second array of
//! counts.
//!
//! # Why a reading is correct
//!
//! One thread at a time updates a value: the thread that runs on the CPU of its ID, by a section, or
//! the thread that holds it. Both do so in the same way, and commit by the journal. A *batch* is the
//! update of a thread that holds a value without an ID: it writes all counts to the array that the
//! journal does not name, and commits by a journal that names this array.
//!
//! *One moment.* A reading loads the journal, everything else, and the journal again. If both are
//! equal, the value was at rest in between. No update writes the sum that a journal names, or a
//! count of its array for another bucket than the journal's, before another journal has been
//! committed; it does so behind a barrier for stores. So a thread that sees such a write also sees
//! that journal at the second load. The count of the journal's bucket is in the journal. Journals do
//! not repeat until the value is taken: their counts grow, and if `times` is 0 nothing is committed.
//! Readings notice takes by themselves (see [`takes`](super::takes)).
//!
//! *Takes.* The thread that takes a value holds it, so no update is lost: those before are in the
//! result, and those after begin with zeros.
//!
//! *While it changes* (a value that could not be held), counts only grow. So the larger of a bucket's
//! word and its count in the journal is the bucket's count at some time since the journal was read.
//! It contains everything that was counted before. While it is taken, it may be the count of before
//! or of after that.

use std::mem::offset_of;
use std::ptr;

use super::takes::Takes;
use crate::critical::tally::{BUCKETS, COUNTS, JOURNAL, Journal, SUMS};
use crate::per_id::{Make, PerId};
use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The start of the value; the counts follow.
#[repr(C)]
pub(super) struct Tallies {
    journal: AtomicI64,
    sums: [AtomicI64; 2],
}

const _: () = {
    let value = PerId::<Tallies, Count>::VALUE;
    assert!(value + offset_of!(Tallies, journal) == JOURNAL);
    assert!(value + offset_of!(Tallies, sums) == SUMS);
    assert!(value + size_of::<Tallies>() == COUNTS);
};

/// The number of buckets, from which the size of values follows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count(pub(super) u16);

impl Count {
    /// Returns the size of a shard, in bytes.
    pub(super) const fn shard_bytes(self) -> usize {
        let counts = self.0 as usize * size_of::<AtomicI64>();
        PerId::<Tallies, Count>::VALUE + size_of::<Tallies>() + counts
    }

    /// Returns the size of a shard that has a second array of counts, in bytes. That begins at the
    /// same place whatever the number of buckets; what lies between is never touched.
    pub(super) const fn extra_bytes(self) -> usize {
        self.shard_bytes() + BUCKETS * size_of::<AtomicI64>()
    }
}

impl Make<Tallies> for Count {
    fn shard_bytes(&self) -> usize {
        Count::shard_bytes(*self)
    }

    fn extra_bytes(&self) -> usize {
        Count::extra_bytes(*self)
    }

    /// Zeros are a value that counts nothing.
    unsafe fn make_at(&self, _: *mut Tallies) {}
}

/// Buckets that a reading of one moment copies at first: 2 KiB of the stack.
pub(super) const COPIED: usize = 256;

/// Buckets whose copy costs next to nothing.
const FEW: usize = 16;

/// Readings that are tried before the value is held.
const TRIES: usize = 8;

impl Tallies {
    /// Counts `times` values whose sum is `sum`, as the only thread that updates this value. The
    /// steps are those of the section.
    pub(super) fn tally(&self, bucket: usize, times: u64, sum: f64) {
        let journal = self.journal();
        let last = self.counted(journal, bucket);
        // The barrier for stores: readers that see what follows see the journal.
        fence(Release);
        self.count(journal.array(), journal.bucket()).store(journal.count() as i64, Relaxed);
        let other = self.add_to_other_sum(journal, sum);
        let count = last.wrapping_add(times);
        self.commit(Journal::new(other, journal.array(), bucket, count));
    }

    /// Counts as many values as `times` returns for each of the `buckets` buckets, and adds their
    /// sum, as the thread that holds this value, which has two arrays. Has no effect if there are no
    /// values.
    pub(super) fn tally_all(&self, buckets: usize, times: impl Fn(usize) -> u64, sum: f64) {
        let Some(last) = (0..buckets).rfind(|&bucket| times(bucket) > 0) else { return };
        let journal = self.journal();
        let array = 1 - journal.array();
        // The barrier for stores, as above: the other array may be the one that a reader reads.
        fence(Release);
        for bucket in 0..buckets {
            let count = self.counted(journal, bucket).wrapping_add(times(bucket));
            self.count(array, bucket).store((count & Journal::COUNTS) as i64, Relaxed);
        }
        let other = self.add_to_other_sum(journal, sum);
        self.commit(Journal::new(other, array, last, self.word(array, last)));
    }

    /// Adds what was counted to `counts`, one for each bucket, and returns the sum. Leaves zeros. The
    /// calling thread holds the value, and readings notice that it is taken.
    pub(super) fn take(&self, counts: &mut [u64]) -> f64 {
        let sum = self.of_any_moment(counts);
        self.journal.store(0, Relaxed);
        self.sums.iter().for_each(|sum| sum.store(0, Relaxed));
        (0..counts.len()).for_each(|bucket| self.count(0, bucket).store(0, Relaxed));
        sum
    }

    fn journal(&self) -> Journal {
        Journal(self.journal.load(Relaxed) as u64)
    }

    fn commit(&self, journal: Journal) {
        self.journal.store(journal.0 as i64, Release);
    }

    /// Stores the journal's sum plus `sum` in the other one, and returns its number.
    fn add_to_other_sum(&self, journal: Journal, sum: f64) -> usize {
        let total = f64::from_bits(self.sums[journal.sum()].load(Relaxed) as u64) + sum;
        let other = 1 - journal.sum();
        self.sums[other].store(total.to_bits() as i64, Relaxed);
        other
    }

    /// Adds what was counted at one moment to `counts`, and returns the sum; `None` if the value
    /// has changed or was taken too often meanwhile, or has too many buckets.
    pub(super) fn at_rest(&self, takes: &Takes, counts: &mut [u64]) -> Option<f64> {
        if counts.len() <= FEW {
            self.at_rest_by_copy::<FEW>(takes, counts)
        } else {
            self.at_rest_by_copy::<COPIED>(takes, counts)
        }
    }

    fn at_rest_by_copy<const MOST: usize>(&self, takes: &Takes, counts: &mut [u64]) -> Option<f64> {
        let mut copy = [0; MOST];
        let copy = copy.get_mut(..counts.len())?;
        let (_, sum) = (0..TRIES).find_map(|_| takes.without(|| self.copy(copy))?)?;
        counts.iter_mut().zip(copy).for_each(|(count, own)| *count = count.wrapping_add(*own));
        Some(sum)
    }

    /// Copies the counts, and returns the journal and the sum; `None` if the value has changed
    /// meanwhile.
    fn copy(&self, counts: &mut [u64]) -> Option<(Journal, f64)> {
        // Acquire: a thread that sees a journal sees the sum and the counts that belong to it.
        let journal = Journal(self.journal.load(Acquire) as u64);
        let sum = self.sums[journal.sum()].load(Relaxed);
        counts.iter_mut().enumerate().for_each(|(bucket, count)| {
            *count = self.counted(journal, bucket);
        });
        // A thread that has seen a later update's write sees the journal that precedes it.
        fence(Acquire);
        let now = self.journal.load(Relaxed) as u64;
        (now == journal.0).then(|| (journal, f64::from_bits(sum as u64)))
    }

    /// Adds what was counted to `counts`, and returns the sum: of one moment if the value does not
    /// change, otherwise of different ones.
    pub(super) fn of_any_moment(&self, counts: &mut [u64]) -> f64 {
        let (journal, sum) = loop {
            if let Some(found) = self.copy(&mut []) {
                break found;
            }
        };
        for (bucket, count) in counts.iter_mut().enumerate() {
            let last = if bucket == journal.bucket() { journal.count() } else { 0 };
            *count = count.wrapping_add(self.word(journal.array(), bucket).max(last));
        }
        sum
    }

    /// Returns the count of a bucket that belongs to a journal.
    fn counted(&self, journal: Journal, bucket: usize) -> u64 {
        if bucket == journal.bucket() {
            journal.count()
        } else {
            self.word(journal.array(), bucket)
        }
    }

    /// Returns the word of a bucket's count, modulo 2^50. It may be out of date for the bucket of
    /// the journal.
    fn word(&self, array: usize, bucket: usize) -> u64 {
        self.count(array, bucket).load(Relaxed) as u64
    }

    fn count(&self, array: usize, bucket: usize) -> &AtomicI64 {
        let counts = ptr::from_ref(self).addr() + size_of::<Tallies>();
        // SAFETY: the counts of all buckets follow the value in the memory of its shard, whose
        // address was exposed. Callers pass numbers of buckets, and an array that the value has:
        // the other one than 0 is that of a batch, or of a journal of one.
        unsafe { &*ptr::with_exposed_provenance::<AtomicI64>(counts).add(array * BUCKETS + bucket) }
    }
}
