//! Counts of values in buckets, and their sum.
//!
//! # A shard's memory
//!
//! The memory contains the journal, two sums, and a count for every bucket: see
//! [`critical::tally`](crate::critical::tally). A thread without an ID adds to the counts and to
//! the first sum by atomic instructions, in a shard whose journal stays 0. For that journal the
//! first sum is the sum, and the count of bucket 0 is 0, which the word of that count exceeds or
//! equals.
//!
//! # Why a reading is correct
//!
//! Counts only grow. So the larger of a bucket's word and its count in the journal is the bucket's
//! count at some time since the journal was read. It contains everything that was counted before.
//! The word of each bucket except the journal's was written before the journal was. The store of
//! the journal releases, and the reader acquires.
//!
//! The sum is read between two loads of the journal, and read again if the journal has changed. No
//! section writes the word that a journal names before another journal has been committed. A thread
//! that sees such a write also sees that journal at the second load, since a section writes a sum
//! behind a barrier for stores. Journals do not repeat: their counts grow, and if `times` is 0
//! nothing is committed. So the sum belongs to the journal, and never contains a value that an
//! aborted section has written.

use std::fmt;

use crate::critical::by_mark;
use crate::critical::tally::{self, COUNTS, Journal, SUMS};
use crate::handle::{Handle, Needs, State};
use crate::id::{Source, SourceError};
use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed},
    fence,
};
use crate::update::{self, Update};
#[cfg(feature = "testing")]
use std::sync::atomic::Ordering::Release;

const WORD: usize = 8;

/// Counts of values in up to [`MAX`](Buckets::MAX) buckets, and the sum of the values. Every CPU
/// updates both in memory of its own, in one step.
///
/// It is the basis of a histogram whose buckets the program chooses: the program decides which
/// bucket a value belongs to. [`Histogram`](crate::Histogram) chooses its own buckets, and has no
/// sum.
///
/// ```
/// use percid::Buckets;
///
/// const LIMITS: [f64; 3] = [0.01, 0.1, 1.0];
/// static SECONDS: Buckets = Buckets::new(LIMITS.len() + 1);
///
/// for seconds in [0.002, 0.05, 0.0625, 7.5] {
///     SECONDS.record(LIMITS.partition_point(|&limit| limit < seconds), seconds);
/// }
/// let mut counts = [0; 4];
/// let sum = SECONDS.read(&mut counts);
/// assert_eq!((counts, sum), ([1, 2, 0, 1], 7.6145));
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. A record is never lost
///   and never counted twice.
/// * **Signals**: every method is async-signal-safe, also in a handler that interrupts the same
///   method, and preserves `errno`. Recording does not wait; [`read`](Buckets::read) starts over if
///   a thread records in between, see [below](#consistency-of-a-reading).
/// * **A reading may miss** records that run at the same time, of which it may contain the count
///   and not the value, or the value and not the count. It contains every record that *happens
///   before* it, so after joining threads it is exact.
/// * **Rounding**: each CPU's sum is rounded as floats are, and so is their total. Sums of integers are
///   exact up to 2^53. An infinity or NaN stays in the sum.
/// * **Overflow**: a bucket's count wraps around at 50 bits for each ID.
/// * **Fork**: the child's buckets start with the parent's counts, on memory of its own.
/// * **Memory**: 16 bytes for the handle; for every ID that used it 24 bytes and 8 bytes per
///   bucket, rounded up to a power of two. The shared slot takes the same once a thread needed it.
/// * **Cost**: a record is about 30 instructions on x86-64, four of them stores, none locked. With
///   [`Source::Atomic`] it is a call and two locked instructions, which do not happen in one step.
///   A reading loads every word of every ID ever used. Creating one is a constant.
/// * **Without memory** records are counted by [`unrecorded`](Buckets::unrecorded) and nowhere else.
///
/// # Consistency of a reading
///
/// A reading loads the sum between two loads of the last record, and starts over if another record
/// was made in between. The words are adjacent, so this takes a few nanoseconds, and few records
/// are made during them. It is lock-free: whenever it starts over, a record was made.
pub struct Buckets {
    handle: Handle,
    count: u16,
}

/// One update of a bucket and the sum.
#[derive(Clone, Copy)]
struct Tally {
    bucket: usize,
    times: u64,
    sum: f64,
}

impl Update for Tally {
    #[inline(always)]
    unsafe fn by_section(self, word: usize) -> bool {
        let place = tally::place(self.bucket);
        // SAFETY: the caller passes the word of a handle whose block has a count for this bucket.
        unsafe { by_mark!(word, tally(place, self.times, self.sum), else false) }
    }

    fn atomically(self, word: impl Fn(usize) -> &'static AtomicI64) {
        update::add_float(word(SUMS), self.sum);
        word(COUNTS + self.bucket * WORD).fetch_add(self.times as i64, Relaxed);
    }

    fn times(self) -> i64 {
        self.times as i64
    }
}

impl Buckets {
    /// The maximum number of buckets, 2048.
    pub const MAX: usize = tally::BUCKETS;

    /// Creates empty buckets that will use the source of the process (see [`init`](crate::init)).
    ///
    /// # Panics
    ///
    /// If `count` is 0 or more than [`MAX`](Buckets::MAX); in a `static` that is a compile error.
    ///
    /// ```
    /// static SIZES: percid::Buckets = percid::Buckets::new(12);
    /// SIZES.record(3, 1500.0);
    /// ```
    pub const fn new(count: usize) -> Buckets {
        Buckets { handle: Handle::new(), count: checked(count) }
    }

    /// Creates empty buckets that use `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid::{Buckets, Source};
    ///
    /// let sizes = Buckets::with_source(2, Source::Atomic)?;
    /// sizes.record(1, 512.0);
    /// assert_eq!(sizes.read(&mut [0; 2]), 512.0);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    ///
    /// # Panics
    ///
    /// The same as for [`new`](Buckets::new).
    pub fn with_source(count: usize, source: Source) -> Result<Buckets, SourceError> {
        let count = checked(count);
        let handle = Handle::with_source(source, Needs::Sections, bytes(count))?;
        Ok(Buckets { handle, count })
    }

    /// Returns the number of buckets.
    ///
    /// ```
    /// assert_eq!(percid::Buckets::new(12).len(), 12);
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "there is always a bucket")]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Counts a value in a bucket, or in the last one if `bucket` is too large, and adds it to the
    /// sum.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(2);
    /// sizes.record(0, 12.5);
    /// let mut counts = [0; 2];
    /// assert_eq!((sizes.read(&mut counts), counts), (12.5, [1, 0]));
    /// ```
    #[inline(always)]
    pub fn record(&self, bucket: usize, value: f64) {
        self.tally(bucket, 1, value);
    }

    /// Counts `times` values whose sum is `sum` in a bucket, in one step. Has no effect if `times`
    /// is 0.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(2);
    /// sizes.record_many(1, 3, 30.0);
    /// let mut counts = [0; 2];
    /// assert_eq!((sizes.read(&mut counts), counts), (30.0, [0, 3]));
    /// ```
    #[inline]
    pub fn record_many(&self, bucket: usize, times: u64, sum: f64) {
        if times > 0 {
            self.tally(bucket, times, sum);
        }
    }

    #[inline(always)]
    fn tally(&self, bucket: usize, times: u64, sum: f64) {
        let tally = Tally { bucket: bucket.min(self.len() - 1), times, sum };
        // SAFETY: the word of a handle; its block has a count for every bucket.
        if !unsafe { tally.by_section(self.handle.word()) } {
            self.tally_slowly(tally.bucket, times, sum);
        }
    }

    /// Records a value in the slow path. The arguments are in registers, so that nothing is stored
    /// before the call.
    #[cold]
    #[inline(never)]
    fn tally_slowly(&self, bucket: usize, times: u64, sum: f64) {
        update::slowly(&self.handle, bytes(self.count), Tally { bucket, times, sum });
    }

    /// Stores the count of each bucket, and returns the sum of all values. Buckets beyond the end
    /// of `counts` are left out, and elements beyond the last bucket become 0.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(2);
    /// sizes.record(1, 8.0);
    /// let mut counts = [0; 2];
    /// assert_eq!((sizes.read(&mut counts), counts), (8.0, [0, 1]));
    /// ```
    pub fn read(&self, counts: &mut [u64]) -> f64 {
        counts.fill(0);
        let State::Claimed(block, source) = self.handle.state() else { return 0.0 };
        let kept = self.len().min(counts.len());
        let counts = &mut counts[..kept];
        let mut sum = 0.0;
        if block.shared_if_used().is_some() {
            sum += add_shard(counts, |offset| block.at(offset).shared());
        }
        for id in 0..source.map_or(0, Source::id_count) {
            sum += add_shard(counts, |offset| block.at(offset).word_of_id(id));
        }
        sum
    }

    /// Returns the number of values that could not be recorded because there was no memory.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(2);
    /// sizes.record(1, 8.0);
    /// assert_eq!(sizes.unrecorded(), 0);
    /// ```
    pub fn unrecorded(&self) -> u64 {
        match self.handle.state() {
            State::Inline(count) => count as u64,
            State::Unclaimed | State::Claimed(..) => 0,
        }
    }
}

// #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
#[cfg(feature = "testing")]
impl Buckets {
    /// Returns the count of a bucket in the shard of an ID.
    pub(crate) fn count_of_id(&self, id: u32, bucket: usize) -> u64 {
        let mut counts = vec![0; self.len()];
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                add_shard(&mut counts, |offset| block.at(offset).word_of_id(id));
                counts[bucket]
            }
            _ => 0,
        }
    }

    /// Updates the shard of an ID like the section, by loads and stores without any protection.
    pub(crate) fn tally_unprotected(&self, id: u32, bucket: usize, times: u64, sum: f64) {
        let State::Claimed(block, Some(_)) = self.handle.state() else { return };
        let word = |offset: usize| block.at(offset).word_of_id(id);
        let journal = Journal(word(tally::JOURNAL).load(Relaxed) as u64);
        let last = word(COUNTS + journal.bucket() * WORD);
        let count = word(COUNTS + bucket * WORD);
        last.store(journal.count() as i64, Relaxed);
        let now = count.load(Relaxed) as u64 + times;
        let which = 1 - (journal.0 & 1);
        let total = update::float(word(journal.sum()).load(Relaxed)) + sum;
        fence(Release);
        word(SUMS + which as usize * WORD).store(total.to_bits() as i64, Relaxed);
        let next = which | tally::place(bucket) as u64 | now << tally::COUNT_SHIFT;
        word(tally::JOURNAL).store(next as i64, Release);
    }
}

/// Adds the counts of a shard, and returns its sum. `word` returns the shard's words by their
/// offset.
fn add_shard(counts: &mut [u64], word: impl Fn(usize) -> &'static AtomicI64) -> f64 {
    let (journal, sum) = journal_and_sum(&word);
    for (bucket, count) in counts.iter_mut().enumerate() {
        let own = word(COUNTS + bucket * WORD).load(Relaxed) as u64;
        let last = if bucket == journal.bucket() { journal.count() } else { 0 };
        *count = count.wrapping_add(own.max(last));
    }
    sum
}

fn journal_and_sum(word: impl Fn(usize) -> &'static AtomicI64) -> (Journal, f64) {
    loop {
        // Acquire: a thread that sees a journal sees the sum and the counts that belong to it.
        let journal = Journal(word(tally::JOURNAL).load(Acquire) as u64);
        let sum = update::float(word(journal.sum()).load(Relaxed));
        // A thread that has seen a later section's write sees the journal that precedes it.
        fence(Acquire);
        if word(tally::JOURNAL).load(Relaxed) as u64 == journal.0 {
            return (journal, sum);
        }
    }
}

/// Returns the size of a block for `count` buckets.
#[inline(always)]
const fn bytes(count: u16) -> usize {
    COUNTS + count as usize * WORD
}

const fn checked(count: usize) -> u16 {
    assert!(count >= 1 && count <= Buckets::MAX, "there are 1 to 2048 buckets");
    count as u16
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts = vec![0; self.len()];
        let sum = self.read(&mut counts);
        f.debug_struct("Buckets").field("counts", &counts).field("sum", &sum).finish()
    }
}

impl Drop for Buckets {
    fn drop(&mut self) {
        // SAFETY: `&mut self` proves that no operation on this object is running or will run.
        unsafe { self.handle.release(bytes(self.count)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(buckets: &Buckets) -> ([u64; N], f64) {
        let mut counts = [0; N];
        let sum = buckets.read(&mut counts);
        (counts, sum)
    }

    #[test]
    fn every_source_counts_and_adds() {
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            let buckets = Buckets::with_source(5, source).expect("an available source");
            for n in 0..1000 {
                buckets.record(n % 7, n as f64);
                buckets.record_many(2, 3, 0.5);
            }
            let expected = [143, 143, 3143, 143, 143 + 143 + 142];
            assert_eq!(read(&buckets), (expected, 499_500.0 + 500.0), "{source}");
        }
    }

    #[test]
    fn the_same_bucket_again_and_again() {
        let buckets = Buckets::new(3);
        for n in 1..=5 {
            buckets.record(0, 1.0);
            assert_eq!(read(&buckets), ([n, 0, 0], n as f64));
        }
        buckets.record(2, 10.0);
        buckets.record(0, 1.0);
        assert_eq!(read(&buckets), ([6, 0, 1], 16.0));
        assert_eq!(read::<1>(&buckets), ([6], 16.0), "fewer than there are");
        assert_eq!(read::<4>(&buckets), ([6, 0, 1, 0], 16.0), "more than there are");
    }

    #[test]
    fn nothing_is_lost_while_others_read() {
        const RECORDS: usize = if cfg!(miri) { 100 } else { 200_000 };
        let buckets = Buckets::new(7);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let buckets = &buckets;
                let record = move || {
                    (0..RECORDS).for_each(|n| buckets.record((n + thread) % 7, (n % 3) as f64));
                };
                scope.spawn(record);
            }
            scope.spawn(|| {
                let mut before = ([0; 7], 0.0);
                for _ in 0..RECORDS / 100 {
                    let now = read::<7>(&buckets);
                    assert!(before.0.iter().zip(&now.0).all(|(before, now)| before <= now));
                    assert!(before.1 <= now.1 && now.1 <= 8.0 * RECORDS as f64);
                    before = now;
                }
            });
        });
        let (counts, sum) = read::<7>(&buckets);
        assert_eq!(counts.iter().sum::<u64>(), 4 * RECORDS as u64);
        assert_eq!(sum, 4.0 * (0..RECORDS).map(|n| n % 3).sum::<usize>() as f64);
    }

    /// Between a journal and its sum two sections commit, and a third has written its sum when it
    /// is aborted.
    #[test]
    fn a_sum_that_no_section_has_committed_is_not_reported() {
        use std::cell::Cell;
        let words: &[AtomicI64; 4] = Box::leak(Box::default());
        let word = |offset: usize| &words[offset / WORD];
        let looks = Cell::new(0);
        let watched = |offset| {
            if looks.replace(looks.get() + 1) == 1 {
                let journal = tally::JOURNAL;
                word(Journal(0).sum()).store(9.0f64.to_bits() as i64, Relaxed);
                word(Journal(1).sum()).store(2.0f64.to_bits() as i64, Relaxed);
                word(journal).store(1, Relaxed);
            }
            word(offset)
        };
        let (journal, sum) = journal_and_sum(watched);
        assert_eq!((journal.0, sum), (1, 2.0));
    }

    #[test]
    fn a_bucket_beyond_the_last_is_the_last() {
        let buckets = Buckets::new(Buckets::MAX);
        buckets.record(usize::MAX, 1.0);
        buckets.record_many(5000, 0, 7.0);
        let mut counts = vec![0; Buckets::MAX];
        assert_eq!((buckets.read(&mut counts), counts[Buckets::MAX - 1]), (1.0, 1));
    }

    #[test]
    #[should_panic(expected = "1 to 2048")]
    fn no_buckets_are_refused() {
        _ = Buckets::new(0);
    }

    #[test]
    #[should_panic(expected = "1 to 2048")]
    fn too_many_buckets_are_refused() {
        _ = Buckets::new(Buckets::MAX + 1);
    }

    #[test]
    fn records_without_memory_are_counted() {
        let buckets = Buckets::new(2);
        assert!(buckets.handle.replace(State::Unclaimed, State::Inline(0)));
        buckets.record(0, 0.5);
        buckets.record_many(1, 3, 0.5);
        assert_eq!((read(&buckets), buckets.unrecorded()), (([0, 0], 0.0), 4));
    }
}
