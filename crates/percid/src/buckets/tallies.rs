//! The value of an ID: a journal, two sums, and a count for every bucket (see
//! [`critical::tally`](crate::critical::tally)).
//!
//! # Why a reading is correct
//!
//! One thread at a time updates a value: the thread that runs on the CPU of its ID, by a section, or
//! the thread that holds it. Both do so in the same way, and commit by the journal.
//!
//! *One moment.* A reading loads the journal, everything else, and the journal again. If both are
//! equal, the value was at rest in between. No update writes the sum that a journal names, or the
//! count of another bucket than the journal's, before another journal has been committed; it does so
//! behind a barrier for stores. So a thread that sees such a write also sees that journal at the
//! second load. The count of the journal's bucket is in the journal. Journals do not repeat: their
//! counts grow, and if `times` is 0 nothing is committed.
//!
//! *While it changes* (a value that could not be held), counts only grow. So the larger of a bucket's
//! word and its count in the journal is the bucket's count at some time since the journal was read.
//! It contains everything that was counted before.

use std::mem::offset_of;
use std::ptr;

use crate::critical::tally::{self, COUNTS, JOURNAL, Journal, SUMS};
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
}

impl Make<Tallies> for Count {
    fn shard_bytes(&self) -> usize {
        Count::shard_bytes(*self)
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
        let journal = Journal(self.journal.load(Relaxed) as u64);
        let last = if bucket == journal.bucket() { journal.count() } else { self.word(bucket) };
        // The barrier for stores: readers that see what follows see the journal.
        fence(Release);
        self.count(journal.bucket()).store(journal.count() as i64, Relaxed);
        let total = f64::from_bits(self.sums[journal.sum()].load(Relaxed) as u64) + sum;
        let other = 1 - journal.sum();
        self.sums[other].store(total.to_bits() as i64, Relaxed);
        let count = last.wrapping_add(times) << tally::COUNT_SHIFT;
        let next = other as u64 | tally::place(bucket) as u64 | count;
        self.journal.store(next as i64, Release);
    }

    /// Adds what was counted at one moment to `counts`, and returns the sum; `None` if the value
    /// has changed too often meanwhile, or has too many buckets.
    pub(super) fn at_rest(&self, counts: &mut [u64]) -> Option<f64> {
        if counts.len() <= FEW {
            self.at_rest_by_copy::<FEW>(counts)
        } else {
            self.at_rest_by_copy::<COPIED>(counts)
        }
    }

    fn at_rest_by_copy<const MOST: usize>(&self, counts: &mut [u64]) -> Option<f64> {
        let mut copy = [0; MOST];
        let copy = copy.get_mut(..counts.len())?;
        let (_, sum) = (0..TRIES).find_map(|_| self.copy(copy))?;
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
            *count = if bucket == journal.bucket() { journal.count() } else { self.word(bucket) };
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
            *count = count.wrapping_add(self.word(bucket).max(last));
        }
        sum
    }

    /// Returns the word of a bucket's count, modulo 2^50. It may be out of date for the bucket of
    /// the journal.
    fn word(&self, bucket: usize) -> u64 {
        self.count(bucket).load(Relaxed) as u64
    }

    fn count(&self, bucket: usize) -> &AtomicI64 {
        let counts = ptr::from_ref(self).addr() + size_of::<Tallies>();
        // SAFETY: the counts of all buckets follow the value in the memory of its shard, whose
        // address was exposed. Callers pass numbers of buckets.
        unsafe { &*ptr::with_exposed_provenance::<AtomicI64>(counts).add(bucket) }
    }
}
