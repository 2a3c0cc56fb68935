//! The object: values by ID, and readings of all.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::takes::Takes;
use super::tallies::{Count, Tallies};
use crate::critical::{by_mark, tally};
use crate::id::{Source, SourceError};
use crate::per_id::{PerId, ReadValue};
use crate::sys::atomic::AtomicU32;
use crate::sys::preserving_errno;

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
/// * **Readings**: a record is in a reading with both its count and its value, or not at all:
///   [`read`](Buckets::read) sees each ID at one moment, and says when it cannot. It contains every
///   record that *happens before* it, so after joining threads it is exact.
/// * **Takes**: a record is in what one [`take`](Buckets::take) returns or in what the buckets have
///   after it, as a whole; nothing is lost or taken twice.
/// * **Waiting**: recording does not wait. A take waits for other takes, and for readings of the
///   object that hold values, see `read`; a reading waits for takes too.
/// * **Signals**: every method is async-signal-safe, also in a handler that interrupts the same
///   method, and preserves `errno`.
/// * **Rounding**: each ID's sum is rounded as floats are, and so is their total. Sums of integers are
///   exact up to 2^53. An infinity or NaN stays in the sum.
/// * **Overflow**: a bucket's count wraps around at 50 bits for each ID.
/// * **Fork**: the child's buckets start with the parent's counts, on memory of its own. If another
///   thread was taking them, a part of what that has taken may be missing in the child.
/// * **Memory**: 48 bytes for the handle; for every ID that used it 32 bytes and 8 bytes per
///   bucket, rounded up to a power of two; a page or more for each of the values that belong to no
///   ID, which threads use whose ID's value is being read, or who have no ID.
/// * **Cost**: a record is about 32 instructions on x86-64, four of them stores, none locked. With
///   [`Source::Atomic`] it is a call and one locked instruction. A [batch](Buckets::record_all) is a
///   call, one locked instruction, and a load and a store for each bucket. A reading loads every word
///   of every ID ever used, and a take also stores it. Creating one is a constant.
/// * **Without memory** records are counted by [`unrecorded`](Buckets::unrecorded) and nowhere else.
#[repr(C)]
pub struct Buckets {
    // In this order: the words of a record come first.
    pub(super) tallies: ManuallyDrop<PerId<Tallies, Count>>,
    unrecorded: AtomicU64,
    count: u16,
    pub(super) takes: Takes,
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
    #[must_use]
    pub const fn new(count: usize) -> Buckets {
        Buckets::try_new(count).expect("there are 1 to 2048 buckets")
    }

    /// Creates empty buckets like [`new`](Buckets::new); `None` if `count` is 0 or more than
    /// [`MAX`](Buckets::MAX).
    ///
    /// ```
    /// assert!(percid::Buckets::try_new(0).is_none());
    /// ```
    #[must_use]
    pub const fn try_new(count: usize) -> Option<Buckets> {
        if count == 0 || count > Buckets::MAX {
            return None;
        }
        let count = count as u16;
        let tallies = ManuallyDrop::new(PerId::made_by(Count(count)));
        Some(Buckets {
            tallies,
            unrecorded: AtomicU64::new(0),
            takes: Takes { number: AtomicU32::new(0) },
            count,
        })
    }

    /// Creates empty buckets that use `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid::{Buckets, Source};
    ///
    /// let sizes = Buckets::with_source(Source::Atomic, 2)?;
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
    pub fn with_source(source: Source, count: usize) -> Result<Buckets, SourceError> {
        let mut buckets = Buckets::new(count);
        buckets.tallies.use_source(source)?;
        Ok(buckets)
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

    /// Counts `counts[n]` values in each bucket `n`, and adds `sum`, the sum of all of them, in one
    /// step: a reading contains the whole batch or nothing of it. Counts beyond the last bucket
    /// belong to that. Has no effect if all counts are 0.
    ///
    /// A program that has counted elsewhere, such as in a thread of its own, passes its counts on
    /// with this. The batch is added to a value that belongs to no ID.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(3);
    /// sizes.record_all(&[2, 0, 5], 60.0);
    /// let mut counts = [0; 3];
    /// assert_eq!((sizes.read(&mut counts), counts), (60.0, [2, 0, 5]));
    /// ```
    pub fn record_all(&self, counts: &[u64], sum: f64) {
        let total = counts.iter().fold(0_u64, |total, times| total.wrapping_add(*times));
        if counts.iter().all(|&times| times == 0) {
            return;
        }
        let last = self.len() - 1;
        let beyond = counts.iter().skip(last).fold(0_u64, |all, times| all.wrapping_add(*times));
        let times = |bucket| match bucket {
            _ if bucket == last => beyond,
            _ => counts.get(bucket).copied().unwrap_or(0),
        };
        let held = |tallies: &Tallies| tallies.tally_all(self.len(), times, sum);
        if self.tallies.operate_without_id(held).is_none() {
            self.unrecorded.fetch_add(total, Relaxed);
        }
    }

    #[inline(always)]
    fn tally(&self, bucket: usize, times: u64, sum: f64) {
        let bucket = bucket.min(self.len() - 1);
        // SAFETY: the word of this object, whose values have a count for every bucket.
        if !unsafe { by_section(self.tallies.word(), bucket, times, sum) } {
            self.tally_slowly(bucket, times, sum);
        }
    }

    /// Records a value in the slow path. The arguments are in registers, so that nothing is stored
    /// before the call.
    #[cold]
    #[inline(never)]
    fn tally_slowly(&self, bucket: usize, times: u64, sum: f64) {
        // SAFETY: as above.
        let section = |word| unsafe { by_section(word, bucket, times, sum) }.then_some(());
        let held = |tallies: &Tallies| tallies.tally(bucket, times, sum);
        if self.tallies.operate_slowly(section, held).is_none() {
            self.unrecorded.fetch_add(times, Relaxed);
        }
    }

    /// Stores the count of each bucket, and returns the sum of all values. Buckets beyond the end
    /// of `counts` are left out, and elements beyond the last bucket become 0.
    ///
    /// Each ID is read at one moment. If an ID's counts change during eight tries, or if there are
    /// more than 256 of them, its value is held: threads that record with this ID meanwhile use
    /// other memory. That costs a fence, about 10 us, for every 64 IDs. A value cannot be held by a
    /// handler that interrupts a reading or a take of the same object, nor if the process has entered
    /// a sandbox that refuses `membarrier`: then the counts of that ID and their sum may belong to
    /// moments that differ.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(2);
    /// sizes.record(1, 8.0);
    /// let mut counts = [0; 2];
    /// assert_eq!((sizes.read(&mut counts), counts), (8.0, [0, 1]));
    /// ```
    pub fn read(&self, counts: &mut [u64]) -> f64 {
        counts.fill(0);
        let kept = self.len().min(counts.len());
        let mut reading = Reading { takes: &self.takes, counts: &mut counts[..kept], sum: 0.0 };
        preserving_errno(|| {
            self.wait_for_take();
            self.tallies.read_all(&mut reading);
        });
        reading.sum
    }

    /// Waits while another thread takes values, since a reading would hold every value meanwhile.
    fn wait_for_take(&self) {
        if self.takes.is_under_way() {
            if let Some(_visiting) = self.tallies.lock_visits() {
                self.takes.end();
            }
        }
    }

    /// Takes all values out: stores the count of each bucket, returns the sum, and leaves zeros.
    /// Elements of `counts` beyond the last bucket become 0.
    ///
    /// Each ID's counts and sum are taken at one moment. They are held meanwhile, which costs a
    /// fence, about 10 us, for every 64 IDs: threads that record with this ID use other memory.
    ///
    /// Values that cannot be held stay for the next take: all of them in a handler that interrupts a
    /// reading or a take of the same object, and those of IDs if the process has entered a sandbox
    /// that refuses `membarrier`.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(2);
    /// sizes.record(1, 8.0);
    /// let mut counts = [0; 2];
    /// assert_eq!((sizes.take(&mut counts), counts), (8.0, [0, 1]));
    /// assert_eq!((sizes.take(&mut counts), counts), (0.0, [0, 0]));
    /// ```
    ///
    /// # Panics
    ///
    /// If `counts` has fewer elements than there are buckets: their counts would be lost.
    pub fn take(&self, counts: &mut [u64]) -> f64 {
        counts.fill(0);
        let counts = counts.get_mut(..self.len()).expect("an element for each bucket");
        preserving_errno(|| {
            let mut visit = self.tallies.visit();
            if !visit.has_lock() {
                return 0.0;
            }
            self.takes.begin();
            let sum = visit.by_ref().map(|tallies| tallies.take(counts)).sum();
            self.takes.end();
            sum
        })
    }

    /// Returns the number of values that could not be recorded because there was no memory.
    ///
    /// ```
    /// let sizes = percid::Buckets::new(2);
    /// sizes.record(1, 8.0);
    /// assert_eq!(sizes.unrecorded(), 0);
    /// ```
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded.load(Relaxed)
    }
}

/// Updates a value by the section. Returns `true` if it did.
///
/// # Safety
///
/// The word is that of an object whose values have a count for this bucket.
#[inline(always)]
unsafe fn by_section(word: usize, bucket: usize, times: u64, sum: f64) -> bool {
    // SAFETY: the caller's obligation.
    unsafe { by_mark!(word, tally(tally::place(bucket), times, sum), else false) }
}

/// A reading that is being made.
struct Reading<'r> {
    takes: &'r Takes,
    counts: &'r mut [u64],
    sum: f64,
}

impl ReadValue<Tallies> for Reading<'_> {
    fn at_rest(&mut self, tallies: &Tallies) -> bool {
        let sum = tallies.at_rest(self.takes, self.counts);
        self.sum += sum.unwrap_or(0.0);
        sum.is_some()
    }

    fn any(&mut self, tallies: &Tallies) {
        self.sum += tallies.of_any_moment(self.counts);
    }
}

// #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
#[cfg(feature = "testing")]
impl Buckets {
    /// Returns the count of a bucket in the value of an ID.
    pub(crate) fn count_of_id(&self, id: u32, bucket: usize) -> u64 {
        let mut counts = vec![0; self.len()];
        let read = self.tallies.get(id).map(|tallies| tallies.of_any_moment(&mut counts));
        read.map_or(0, |_| counts[bucket])
    }

    /// Updates the value of an ID like the section, without any protection.
    pub(crate) fn tally_unprotected(&self, id: u32, bucket: usize, times: u64, sum: f64) {
        if let Some(tallies) = self.tallies.get_or_make(id) {
            tallies.tally(bucket, times, sum);
        }
    }
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
        let count = Count(self.count);
        // SAFETY: the sizes of the maker's shards; `&mut self` proves that no operation on this
        // object is running or will run.
        unsafe { self.tallies.release(count.shard_bytes(), count.extra_bytes()) };
    }
}
