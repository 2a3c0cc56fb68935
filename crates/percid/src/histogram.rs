//! Histograms.

use std::fmt;

use crate::arena::Block;
use crate::cell;
use crate::handle::{Handle, Needs, State};
use crate::id::{Source, SourceError};

const WORD: usize = 8;

/// The arrangement of the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Resolution {
    /// log2 of the number of buckets between two powers of two.
    precision: u32,
    /// Number of bits of the largest value.
    bits: u32,
}

impl Resolution {
    const fn new(precision: u32, bits: u32) -> Resolution {
        assert!(precision <= 10, "at most 1024 buckets lie between two powers of two");
        assert!(
            precision < bits && bits <= 64,
            "values have more bits than precision, and at most 64"
        );
        Resolution { precision, bits }
    }

    const fn buckets(self) -> usize {
        (self.bits - self.precision + 1) as usize * (1 << self.precision)
    }

    const fn largest(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Returns the bucket of a value. The value is shifted right until it has `precision` + 1 bits;
    /// the number of shifts is the number of groups of buckets below it.
    #[inline(always)]
    fn bucket(self, value: u64) -> usize {
        let Resolution { precision, bits } = self;
        let value = if bits < 64 { value.min(self.largest()) } else { value };
        let shift = (value | 1 << precision).ilog2() - precision;
        ((shift as usize) << precision) + (value >> shift) as usize
    }

    /// Returns the smallest and the largest value of a bucket.
    fn bounds(self, index: usize) -> (u64, u64) {
        let shift = (index >> self.precision).saturating_sub(1) as u32;
        let low = (index as u64 - (u64::from(shift) << self.precision)) << shift;
        (low, low + ((1 << shift) - 1))
    }
}

/// A histogram of unsigned 64-bit values that every CPU updates in memory of its own.
///
/// Buckets are log-linear: values below 128 have a bucket each, and from there on 64 buckets lie
/// between two powers of two. The value that is reported for a record is the middle of its bucket,
/// at most [`RELATIVE_ERROR`](Histogram::RELATIVE_ERROR) of the value away from it. A program may
/// choose another arrangement: in a `Histogram<PRECISION, BITS>`, 2^PRECISION buckets lie between
/// two powers of two, and a value of more than BITS bits counts as the largest of BITS (see
/// [`sized`](Histogram::sized)).
///
/// ```
/// static LATENCY: percid::Histogram = percid::Histogram::new();
///
/// for microseconds in 1..=1000 {
///     LATENCY.record(microseconds);
/// }
/// let snapshot = LATENCY.snapshot();
/// assert_eq!(snapshot.count(), 1000);
/// let median = snapshot.quantile(0.5).expect("it is not empty");
/// assert!(median.abs_diff(500) <= 4);
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. A record is never
///   lost and never counted twice.
/// * **Signals**: [`record`](Histogram::record) and [`record_many`](Histogram::record_many) are
///   async-signal-safe, also in a handler that interrupts them, and preserve `errno`. The other
///   methods allocate the snapshot.
/// * **A snapshot may miss** records that run at the same time. It contains every record that
///   *happens before* it. It does not show one instant: of two records that run at the same time as
///   the snapshot it may contain only the later one.
/// * **Async**: no method returns a guard, so nothing is held across `.await`; a snapshot may be.
/// * **Fork**: the child's histogram starts with the parent's counts, on memory of its own.
/// * **Memory**: 8 bytes for the handle; address space for 3776 buckets (29.5 KiB) for every ID.
///   Only the pages that are touched use memory: values within a factor of 256 touch one or two. In
///   general there are (BITS - PRECISION + 1) x 2^PRECISION buckets of 8 bytes.
/// * **Cost**: a record is an increment of a [`Counter`](crate::Counter) and 8 instructions more. A
///   snapshot reads 3776 words for every ID ever used. Creating one is a constant.
/// * **Without memory** (there is no address space) values are counted by
///   [`unrecorded`](Histogram::unrecorded) and nowhere else.
pub struct Histogram<const PRECISION: u32 = 6, const BITS: u32 = 64> {
    handle: Handle,
}

impl Histogram {
    /// The maximum difference between a reported value and the recorded one, as a share of it: half
    /// the width of a bucket, 1/128.
    ///
    /// ```
    /// use percid::Histogram;
    ///
    /// let latency = Histogram::new();
    /// latency.record(1_000_000);
    /// let reported = latency.snapshot().max().expect("it is not empty");
    /// assert!(reported.abs_diff(1_000_000) as f64 <= 1e6 * Histogram::RELATIVE_ERROR);
    /// ```
    pub const RELATIVE_ERROR: f64 = 1.0 / (2 << <Histogram>::RESOLUTION.precision) as f64;

    /// Creates an empty histogram that will use the source of the process (see
    /// [`init`](crate::init)).
    ///
    /// ```
    /// static LATENCY: percid::Histogram = percid::Histogram::new();
    /// LATENCY.record(12);
    /// ```
    #[must_use]
    pub const fn new() -> Histogram {
        Histogram { handle: Handle::new() }
    }

    /// Creates an empty histogram that uses `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid::{Histogram, Source};
    ///
    /// let sizes = Histogram::with_source(Source::Atomic)?;
    /// sizes.record(512);
    /// assert_eq!(sizes.snapshot().count(), 1);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source) -> Result<Histogram, SourceError> {
        Ok(Histogram { handle: Handle::with_source(source, Needs::Sections, Self::BYTES)? })
    }
}

#[cfg(test)]
impl<const PRECISION: u32, const BITS: u32> Histogram<PRECISION, BITS> {
    /// Creates an empty histogram like [`with_source`](Histogram::with_source), for every precision
    /// and range.
    #[allow(dead_code, reason = "for tests of Linux with sections")]
    pub(crate) fn sized_with_source(source: Source) -> Result<Self, SourceError> {
        Ok(Histogram { handle: Handle::with_source(source, Needs::Sections, Self::BYTES)? })
    }
}

impl<const PRECISION: u32, const BITS: u32> Histogram<PRECISION, BITS> {
    const RESOLUTION: Resolution = Resolution::new(PRECISION, BITS);
    const BYTES: usize = Self::RESOLUTION.buckets() * WORD;

    /// Creates an empty histogram of a precision and a range of the program's choice, which will
    /// use the source of the process. Does not compile if PRECISION is above 10 or not below BITS,
    /// or BITS above 64.
    ///
    /// ```
    /// use percid::Histogram;
    ///
    /// /// Microseconds up to an hour: 8 buckets for each power of two, 1.9 KiB for each ID.
    /// static WAITS: Histogram<3, 32> = Histogram::sized();
    ///
    /// WAITS.record(1000);
    /// WAITS.record(u64::MAX);
    /// let snapshot = WAITS.snapshot();
    /// assert!(snapshot.min().expect("it is not empty").abs_diff(1000) <= 1000 / 16);
    /// assert!(snapshot.max().expect("it is not empty") <= u64::from(u32::MAX));
    /// ```
    ///
    /// ```compile_fail,E0080
    /// static TOO_FINE: percid::Histogram<11, 64> = percid::Histogram::sized();
    /// ```
    #[must_use]
    pub const fn sized() -> Self {
        const { _ = Self::RESOLUTION };
        Histogram { handle: Handle::new() }
    }

    /// Counts a value.
    ///
    /// ```
    /// let latency = percid::Histogram::new();
    /// latency.record(250);
    /// assert_eq!(latency.snapshot().count(), 1);
    /// ```
    #[inline(always)]
    pub fn record(&self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a value `times` times, in one step.
    ///
    /// ```
    /// let batch = percid::Histogram::new();
    /// batch.record_many(40, 1000);
    /// assert_eq!(batch.snapshot().count(), 1000);
    /// ```
    #[inline(always)]
    pub fn record_many(&self, value: u64, times: u64) {
        let (offset, times) = (Self::RESOLUTION.bucket(value) * WORD, times as i64);
        // SAFETY: the word of a handle; its block has a word for every bucket.
        if !unsafe { cell::add_fast(self.handle.word().wrapping_add(offset), times) } {
            self.record_slowly(offset, times);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_slowly(&self, offset: usize, times: i64) {
        cell::add_slowly(&self.handle, Self::BYTES, offset, times);
    }

    /// Returns a snapshot of the records so far.
    ///
    /// ```
    /// let latency: percid::Histogram = [3, 4, 5].into_iter().collect();
    /// let snapshot = latency.snapshot();
    /// assert_eq!((snapshot.count(), snapshot.quantile(0.5)), (3, Some(4)));
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.read(cell::sum)
    }

    /// Stores the records so far in an existing snapshot. It does not allocate, so it is
    /// async-signal-safe, if the snapshot has the arrangement of this histogram already.
    ///
    /// ```
    /// use percid::histogram::Snapshot;
    ///
    /// let latency: percid::Histogram = [3, 4, 5].into_iter().collect();
    /// let mut snapshot = Snapshot::new();
    /// latency.snapshot_into(&mut snapshot);
    /// assert_eq!(snapshot.count(), 3);
    /// ```
    pub fn snapshot_into(&self, snapshot: &mut Snapshot) {
        self.read_into(snapshot, cell::sum);
    }

    /// Returns a snapshot of the records so far, and removes them: every record is in exactly one
    /// of the snapshots taken, or still in the histogram.
    ///
    /// ```
    /// let latency: percid::Histogram = [3, 4, 5].into_iter().collect();
    /// assert_eq!(latency.take().count(), 3);
    /// assert_eq!(latency.take().count(), 0);
    /// ```
    pub fn take(&self) -> Snapshot {
        self.read(cell::take)
    }

    /// Returns the number of values that could not be recorded because there was no memory.
    ///
    /// ```
    /// let latency = percid::Histogram::new();
    /// latency.record(1);
    /// assert_eq!(latency.unrecorded(), 0);
    /// ```
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        match self.handle.state() {
            State::Inline(count) => count as u64,
            State::Unclaimed | State::Claimed(..) => 0,
        }
    }

    /// Frees the memory and becomes a new histogram. Returns `false` if a copy has freed it before.
    pub(crate) fn give_back(&mut self) -> bool {
        // SAFETY: `&mut self` proves that no operation on this histogram is running or will run.
        unsafe { self.handle.release(Self::BYTES) }
    }

    fn read(&self, total: impl Fn(Block, Option<Source>) -> i64) -> Snapshot {
        let mut snapshot = Snapshot::of(Self::RESOLUTION);
        self.read_into(&mut snapshot, total);
        snapshot
    }

    fn read_into(&self, snapshot: &mut Snapshot, total: impl Fn(Block, Option<Source>) -> i64) {
        if snapshot.resolution != Self::RESOLUTION {
            *snapshot = Snapshot::of(Self::RESOLUTION);
        }
        let State::Claimed(block, source) = self.handle.state() else {
            return snapshot.counts.fill(0);
        };
        for (index, count) in snapshot.counts.iter_mut().enumerate() {
            *count = total(block.at(index * WORD), source) as u64;
        }
    }
}

// #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
#[cfg(feature = "testing")]
impl Histogram {
    /// Returns the word of a value's bucket in the shard of an ID.
    pub(crate) fn word_of_id(&self, value: u64, id: u32) -> Option<&std::sync::atomic::AtomicI64> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                Some(block.at(Self::RESOLUTION.bucket(value) * WORD).word_of_id(id))
            }
            _ => None,
        }
    }
}

impl<const PRECISION: u32, const BITS: u32> Extend<u64> for Histogram<PRECISION, BITS> {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.record(value));
    }
}

impl<const PRECISION: u32, const BITS: u32> FromIterator<u64> for Histogram<PRECISION, BITS> {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut histogram = Self::sized();
        histogram.extend(values);
        histogram
    }
}

impl<const PRECISION: u32, const BITS: u32> Default for Histogram<PRECISION, BITS> {
    fn default() -> Self {
        Self::sized()
    }
}

impl<const PRECISION: u32, const BITS: u32> fmt::Debug for Histogram<PRECISION, BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Histogram").field(&self.snapshot()).finish()
    }
}

impl<const PRECISION: u32, const BITS: u32> Drop for Histogram<PRECISION, BITS> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Returns the rank of a quantile among `count` values, from 1.
fn rank(q: f64, count: u64) -> u64 {
    let exact = q.clamp(0.0, 1.0) * count as f64;
    // 0.07 * 100 is a little more than 7.
    let nearest = exact.round();
    let is_integer = (exact - nearest).abs() <= nearest * 4.0 * f64::EPSILON;
    let rank = if is_integer { nearest } else { exact.ceil() };
    (rank as u64).clamp(1, count.max(1))
}

/// The records of a histogram at some time. It owns its counts, 29.5 KiB (as many bytes as the
/// histogram has for each ID), and has the histogram's precision and range.
///
/// ```
/// let latency: percid::Histogram = (1..=100).collect();
/// let snapshot = latency.snapshot();
/// println!("p99 {:?} of {}", snapshot.quantile(0.99), snapshot.count());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Snapshot {
    resolution: Resolution,
    counts: Box<[u64]>,
}

/// A bucket of a snapshot.
///
/// ```
/// let sizes: percid::Histogram = [5, 5, 300].into_iter().collect();
/// let snapshot = sizes.snapshot();
/// let first = snapshot.buckets().next().expect("it is not empty");
/// assert_eq!((first.low, first.high, first.count), (5, 5, 2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Bucket {
    /// The smallest value in the bucket's range.
    pub low: u64,
    /// The largest value in the bucket's range.
    pub high: u64,
    /// Number of values in the bucket.
    pub count: u64,
}

impl Bucket {
    fn middle(&self) -> u64 {
        self.low + (self.high - self.low) / 2
    }
}

impl Snapshot {
    /// Creates a snapshot without values, to merge others into.
    ///
    /// ```
    /// use percid::histogram::Snapshot;
    ///
    /// assert_eq!(Snapshot::new().count(), 0);
    /// ```
    #[must_use]
    pub fn new() -> Snapshot {
        Snapshot::of(<Histogram>::RESOLUTION)
    }

    fn of(resolution: Resolution) -> Snapshot {
        Snapshot { resolution, counts: vec![0; resolution.buckets()].into_boxed_slice() }
    }

    /// Returns the number of recorded values.
    ///
    /// ```
    /// let sizes: percid::Histogram = [1, 2, 3].into_iter().collect();
    /// assert_eq!(sizes.snapshot().count(), 3);
    /// ```
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// Returns the value that a share `q` of the values does not exceed: 0.5 for the median, 0 for
    /// the smallest, 1 for the largest. Numbers outside this range count as its nearest end.
    /// Returns `None` if there are no values.
    ///
    /// The result is exact up to [`Histogram::RELATIVE_ERROR`] (with another precision 1 /
    /// 2^(PRECISION + 1)). It is the middle of the bucket that contains the value of rank `ceil(q *
    /// count)`. A product that differs from an integer only by rounding counts as that integer. NaN
    /// counts as 0.
    ///
    /// ```
    /// let latency: percid::Histogram = (1..=100).collect();
    /// assert_eq!(latency.snapshot().quantile(0.9), Some(90));
    /// ```
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        let rank = rank(q, count);
        let mut below = 0u64;
        let found = self.buckets().find(|bucket| {
            below = below.wrapping_add(bucket.count);
            below >= rank
        });
        found.map(|bucket| bucket.middle())
    }

    /// Returns the number of values that were at most `limit`: those of the buckets that end there
    /// or before. Values that share a bucket with `limit` are left out unless `limit` is the
    /// largest of that bucket; they are less than twice [`Histogram::RELATIVE_ERROR`] away from it.
    /// [`Buckets`](crate::Buckets) have limits of the program's choice.
    ///
    /// ```
    /// let sizes: percid::Histogram = [1, 2, 3, 4000].into_iter().collect();
    /// let snapshot = sizes.snapshot();
    /// assert_eq!([0, 2, 127, u64::MAX].map(|limit| snapshot.count_at_or_below(limit)), [0, 2, 3, 4]);
    /// ```
    #[must_use]
    pub fn count_at_or_below(&self, limit: u64) -> u64 {
        let within = self.buckets().take_while(|bucket| bucket.high <= limit);
        within.fold(0, |sum, bucket| sum.wrapping_add(bucket.count))
    }

    /// Returns the smallest value, up to [`Histogram::RELATIVE_ERROR`].
    ///
    /// ```
    /// let sizes: percid::Histogram = [7, 3, 9].into_iter().collect();
    /// assert_eq!(sizes.snapshot().min(), Some(3));
    /// ```
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        self.quantile(0.0)
    }

    /// Returns the largest value, up to [`Histogram::RELATIVE_ERROR`].
    ///
    /// ```
    /// let sizes: percid::Histogram = [7, 3, 9].into_iter().collect();
    /// assert_eq!(sizes.snapshot().max(), Some(9));
    /// ```
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.quantile(1.0)
    }

    /// Returns the mean value, up to [`Histogram::RELATIVE_ERROR`].
    ///
    /// ```
    /// let sizes: percid::Histogram = [2, 4].into_iter().collect();
    /// assert_eq!(sizes.snapshot().mean(), Some(3.0));
    /// ```
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        let sum: f64 = self.buckets().map(|it| it.middle() as f64 * it.count as f64).sum();
        (count > 0).then(|| sum / count as f64)
    }

    /// Returns the buckets that have values, from the smallest.
    ///
    /// ```
    /// let sizes: percid::Histogram = [2, 2, 4].into_iter().collect();
    /// for bucket in sizes.snapshot().buckets() {
    ///     println!("{} to {}: {}", bucket.low, bucket.high, bucket.count);
    /// }
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count != 0);
        filled.map(|(index, &count)| {
            let (low, high) = self.resolution.bounds(index);
            Bucket { low, high, count }
        })
    }

    /// Adds the values of another snapshot: of another histogram, process or machine. If its
    /// precision or range is different, each of its buckets is merged as the middle of that bucket,
    /// so that both errors add up.
    ///
    /// ```
    /// let (reads, writes): (percid::Histogram, percid::Histogram) =
    ///     ([1, 2].into_iter().collect(), [3].into_iter().collect());
    /// let mut all = reads.snapshot();
    /// all.merge(&writes.snapshot());
    /// assert_eq!(all.count(), 3);
    /// ```
    pub fn merge(&mut self, other: &Snapshot) {
        if self.resolution != other.resolution {
            return other.buckets().for_each(|bucket| {
                let count = &mut self.counts[self.resolution.bucket(bucket.middle())];
                *count = count.wrapping_add(bucket.count);
            });
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.wrapping_add(*more);
        }
    }
}

impl Extend<Snapshot> for Snapshot {
    fn extend<I: IntoIterator<Item = Snapshot>>(&mut self, others: I) {
        others.into_iter().for_each(|other| self.merge(&other));
    }
}

impl FromIterator<Snapshot> for Snapshot {
    /// Merges snapshots of several histograms, processes or machines, with the precision and range
    /// of the first.
    fn from_iter<I: IntoIterator<Item = Snapshot>>(others: I) -> Snapshot {
        let mut others = others.into_iter();
        let mut all = others.next().unwrap_or_default();
        all.extend(others);
        all
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Snapshot::new()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("median", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns values around every power of two, and the ends of the range.
    fn probes() -> impl Iterator<Item = u64> {
        let near =
            |power: u32| (0..4u64).flat_map(move |d| [(1 << power) + d, (1u64 << power) - d]);
        (2..64).flat_map(near).chain([0, 1, u64::MAX, u64::MAX - 1])
    }

    /// Returns every resolution that compiles.
    fn resolutions() -> impl Iterator<Item = Resolution> {
        let of = |precision| (precision + 1..=64).map(move |bits| Resolution::new(precision, bits));
        (0..=10).flat_map(of)
    }

    /// Returns the default resolution, and extreme ones.
    fn some_resolutions() -> impl Iterator<Item = Resolution> {
        let some = [(6, 64), (0, 1), (0, 64), (3, 32), (6, 7), (10, 11), (10, 64)];
        some.into_iter().map(|(precision, bits)| Resolution::new(precision, bits))
    }

    #[test]
    fn every_value_lies_in_its_bucket() {
        for resolution in some_resolutions() {
            for value in probes() {
                let (low, high) = resolution.bounds(resolution.bucket(value));
                let counted = value.min(resolution.largest());
                assert!(low <= counted && counted <= high, "{resolution:?}: {value}");
            }
        }
    }

    #[test]
    fn buckets_meet_without_gaps_up_to_the_largest_value() {
        let all = resolutions().filter(|it| !cfg!(miri) || (it.precision, it.bits) == (3, 32));
        for resolution in all {
            let bounds = |index| resolution.bounds(index);
            for index in 1..resolution.buckets() {
                assert_eq!(bounds(index).0, bounds(index - 1).1 + 1, "{resolution:?}: {index}");
                assert_eq!(resolution.bucket(bounds(index).0), index, "{resolution:?}");
            }
            let ends = (bounds(0).0, bounds(resolution.buckets() - 1).1);
            assert_eq!(ends, (0, resolution.largest()), "{resolution:?}");
        }
    }

    #[test]
    fn what_is_reported_is_as_close_as_stated() {
        for resolution in some_resolutions() {
            let bounds = |index| resolution.bounds(index);
            let ends = (0..resolution.buckets()).map(bounds).flat_map(|(low, high)| [low, high]);
            let stated = 1.0 / (2 << resolution.precision) as f64;
            for value in probes().filter(|it| *it <= resolution.largest()).chain(ends) {
                let (low, high) = bounds(resolution.bucket(value));
                let reported = Bucket { low, high, count: 1 }.middle();
                let error = reported.abs_diff(value) as f64;
                assert!(error <= value as f64 * stated, "{resolution:?}: {value}: {reported}");
            }
        }
    }

    #[test]
    fn what_has_more_bits_counts_as_the_largest() {
        let histogram: Histogram<2, 10> = [3, 1023, 1024, u64::MAX].into_iter().collect();
        let snapshot = histogram.snapshot();
        let buckets: Vec<_> = snapshot.buckets().map(|it| (it.low, it.high, it.count)).collect();
        assert_eq!(buckets, [(3, 3, 1), (896, 1023, 3)]);
        assert_eq!(snapshot.counts.len(), (10 - 2 + 1) * 4);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a snapshot takes Miri some seconds")]
    fn snapshots_of_other_resolutions_are_merged_by_the_middle_of_buckets() {
        let (fine, coarse): (Histogram, Histogram<1, 20>) =
            ([1000, 1 << 40].into_iter().collect(), [1000].into_iter().collect());
        let mut all = coarse.snapshot();
        all.merge(&fine.snapshot());
        let buckets: Vec<_> = all.buckets().map(|it| (it.low, it.high, it.count)).collect();
        assert_eq!(buckets, [(768, 1023, 2), (786_432, 1_048_575, 1)]);
        let mut other = fine.snapshot();
        other.merge(&coarse.snapshot());
        assert_eq!((other.count(), other.count_at_or_below(900)), (3, 1));
        coarse.snapshot_into(&mut other);
        assert_eq!(other, coarse.snapshot(), "it has the other resolution now");
    }

    #[test]
    #[cfg_attr(miri, ignore = "a snapshot takes Miri some seconds")]
    fn every_source_records() {
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            let histogram = Histogram::with_source(source).expect("an available source");
            (0..10_000).for_each(|value| histogram.record(value));
            histogram.record_many(1 << 40, 90_000);
            let snapshot = histogram.snapshot();
            assert_eq!(snapshot.count(), 100_000, "{source}");
            assert_eq!(snapshot.min(), Some(0), "{source}");
            for (q, exact) in [(0.05, 4999), (0.1, 9999), (0.11, 1 << 40), (1.0, 1 << 40)] {
                let reported = snapshot.quantile(q).expect("not empty");
                let error = reported.abs_diff(exact) as f64 / exact as f64;
                assert!(error <= Histogram::RELATIVE_ERROR, "{source}: {q}: {reported}");
            }
            assert_eq!(histogram.take(), snapshot, "{source}");
            assert_eq!(histogram.snapshot().count(), 0, "{source}");
        }
    }

    #[test]
    fn the_stated_error_is_half_a_bucket() {
        assert_eq!(Histogram::RELATIVE_ERROR, 1.0 / 128.0);
        let resolution = <Histogram>::RESOLUTION;
        let (low, high) = resolution.bounds(resolution.bucket(1 << 20));
        assert_eq!((high - low + 1) as f64 / 2.0, low as f64 * Histogram::RELATIVE_ERROR);
    }

    #[test]
    fn a_source_that_was_asked_for_is_used() {
        let histogram = Histogram::with_source(Source::Atomic).expect("always available");
        let State::Claimed(_, source) = histogram.handle.state() else { panic!("claimed") };
        assert_eq!(source, Some(Source::Atomic));
    }

    #[test]
    fn without_memory_values_are_counted_as_unrecorded() {
        let histogram = Histogram::new();
        assert_eq!(histogram.unrecorded(), 0);
        assert!(histogram.handle.replace(State::Unclaimed, State::Inline(0)));
        histogram.record(5);
        histogram.record_many(6, 3);
        assert_eq!((histogram.unrecorded(), histogram.snapshot().count()), (4, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "a snapshot takes Miri some seconds")]
    fn what_is_printed_says_what_was_recorded() {
        let histogram: Histogram = (1..=100).collect();
        let text = "Snapshot { count: 100, min: Some(1), median: Some(50), p99: Some(99), \
                    max: Some(100) }";
        assert_eq!(format!("{:?}", histogram.snapshot()), text);
        assert_eq!(format!("{histogram:?}"), format!("Histogram({text})"));
    }

    #[test]
    fn ranks() {
        let ranks = |count| [0.0, 0.07, 0.5, 0.501, 0.99, 1.0, f64::NAN].map(|q| rank(q, count));
        assert_eq!(ranks(100), [1, 7, 50, 51, 99, 100, 1]);
        assert_eq!(ranks(1), [1; 7]);
        assert_eq!(rank(1.0, u64::MAX), u64::MAX);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a snapshot takes Miri some seconds")]
    fn a_snapshot_that_is_used_again_forgets_what_it_had() {
        let mut snapshot: Snapshot =
            [[7].into_iter().collect::<Histogram>().snapshot()].into_iter().collect();
        let histogram: Histogram = [3, 300].into_iter().collect();
        histogram.snapshot_into(&mut snapshot);
        assert_eq!(snapshot, histogram.snapshot());
        Histogram::new().snapshot_into(&mut snapshot);
        assert_eq!(snapshot.count(), 0);
    }

    #[test]
    fn counts_up_to_a_limit_are_those_of_the_buckets_below() {
        let mut snapshot = Snapshot::new();
        for value in [0, 5, 200, 201, 202, 5000] {
            snapshot.counts[snapshot.resolution.bucket(value)] += 1;
        }
        let counts = [0, 4, 5, 199, 200, 201, 202, 203, 4999, 5000, 5055, u64::MAX];
        // 200 and 201 share a bucket, so do 202 and 203, and 4992 to 5055.
        let expected = [1, 1, 2, 2, 2, 4, 4, 5, 5, 5, 6, 6];
        assert_eq!(counts.map(|limit| snapshot.count_at_or_below(limit)), expected);
    }

    #[test]
    fn snapshots_add_up() {
        let (mut one, mut other) = (Snapshot::new(), Snapshot::new());
        (one.counts[5], other.counts[7]) = (1, 3);
        let both: Snapshot = [one.clone(), other.clone()].into_iter().collect();
        let buckets: Vec<_> = both.buckets().map(|it| (it.low, it.high, it.count)).collect();
        assert_eq!(buckets, [(5, 5, 1), (7, 7, 3)]);
        assert_eq!((both.min(), both.mean(), both.max()), (Some(5), Some(6.5), Some(7)));
        one.extend([other]);
        assert_eq!(one, both);
    }

    #[test]
    fn the_largest_value_has_a_word_of_the_block() {
        let histogram = Histogram::new();
        histogram.record_many(u64::MAX, 3);
        let State::Claimed(block, source) = histogram.handle.state() else { panic!("claimed") };
        let last = block.at(<Histogram>::BYTES - WORD);
        assert_eq!((cell::sum(last, source), cell::take(last, source)), (3, 3));
    }

    #[test]
    fn an_empty_histogram_has_no_values() {
        let snapshot = Histogram::new().snapshot();
        assert_eq!((snapshot.count(), snapshot.quantile(0.5), snapshot.mean()), (0, None, None));
    }
}
