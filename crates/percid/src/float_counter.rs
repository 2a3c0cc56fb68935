//! Counters of floating-point numbers.

use std::fmt;

use crate::arena::Block;
use crate::baseline;
use crate::critical::by_mark;
use crate::float_word::{float, float_bits};
use crate::handle::{Handle, Needs, State};
use crate::id::{Source, SourceError};
use crate::sys::atomic::{AtomicI64, Ordering::Relaxed};
use crate::update::{self, Update};

/// The size of a counter's block.
const BYTES: usize = 8;

/// A sum of `f64` that every CPU adds to in memory of its own.
///
/// ```
/// static JOULES: percid::FloatCounter = percid::FloatCounter::new();
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| JOULES.add(0.25)));
///     }
/// });
/// assert_eq!(JOULES.sum(), 1000.0);
/// ```
///
/// # Contract
///
/// The contract of [`Counter`](crate::Counter) applies, with these differences.
///
/// * **Rounding**: each CPU's sum is rounded as floats are, and so is their total. Sums of integers
///   are exact up to 2^53. An infinity or NaN stays in the sum; after [`take`](FloatCounter::take)
///   has returned it, sums are NaN.
/// * **Takes** leave the CPUs' sums as they are, and round as sums of everything that was ever added
///   do. Their results and the remaining sum add up: nothing is lost or taken twice.
/// * **Memory**: 16 bytes for the handle.
/// * **Cost**: an addition takes as many instructions as a counter's, and a few cycles more; with
///   [`Source::Atomic`] a call and a loop of one locked instruction.
/// * **Without memory** additions are counted by [`unrecorded`](FloatCounter::unrecorded) and nowhere
///   else.
pub struct FloatCounter {
    handle: Handle,
    /// The part of the total that was taken: see [`baseline`].
    taken: AtomicI64,
}

/// An addition.
#[derive(Clone, Copy)]
struct Add(f64);

impl Update for Add {
    #[inline(always)]
    unsafe fn by_section(self, word: usize) -> bool {
        // SAFETY: the caller passes the word of a handle whose block consists of one word.
        unsafe { by_mark!(word, add_float(self.0), else false) }
    }

    fn atomically(self, word: impl Fn(usize) -> &'static AtomicI64) {
        update::add_float(word(0), self.0);
    }

    fn times(self) -> i64 {
        1
    }
}

impl FloatCounter {
    /// Creates a counter of value 0 that will use the source of the process (see
    /// [`init`](crate::init)).
    ///
    /// ```
    /// static JOULES: percid::FloatCounter = percid::FloatCounter::new();
    /// assert_eq!(JOULES.sum(), 0.0);
    /// ```
    #[must_use]
    pub const fn new() -> FloatCounter {
        FloatCounter { handle: Handle::new(), taken: AtomicI64::new(0) }
    }

    /// Creates a counter of value 0 that uses `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid::{FloatCounter, Source};
    ///
    /// let counter = FloatCounter::with_source(Source::Atomic)?;
    /// counter.add(0.5);
    /// assert_eq!(counter.sum(), 0.5);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source) -> Result<FloatCounter, SourceError> {
        let handle = Handle::with_source(source, Needs::Sections, BYTES)?;
        Ok(FloatCounter { handle, taken: AtomicI64::new(0) })
    }

    /// Adds `n`, which may be negative.
    ///
    /// ```
    /// let balance = percid::FloatCounter::new();
    /// balance.add(5.5);
    /// balance.add(-7.0);
    /// assert_eq!(balance.sum(), -1.5);
    /// ```
    #[inline(always)]
    pub fn add(&self, n: f64) {
        // SAFETY: the word of a handle; its block consists of one word.
        if !unsafe { Add(n).by_section(self.handle.word()) } {
            self.add_slowly(n);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_slowly(&self, n: f64) {
        update::slowly(&self.handle, BYTES, Add(n));
    }

    /// Returns the sum over all IDs.
    ///
    /// ```
    /// let seconds = percid::FloatCounter::new();
    /// seconds.add(0.125);
    /// assert_eq!(seconds.sum(), 0.125);
    /// ```
    #[must_use]
    pub fn sum(&self) -> f64 {
        baseline::remaining(&self.taken, || self.total())
    }

    /// Returns the sum over all IDs, and resets it to zero. An addition that runs at the same time
    /// is contained either in the result or in the value that remains: none is lost or taken twice.
    ///
    /// Lock-free: it starts over if another `take` happens during it.
    ///
    /// ```
    /// let joules = percid::FloatCounter::new();
    /// joules.add(0.75);
    /// assert_eq!(joules.take(), 0.75); // reported once a minute, say
    /// assert_eq!(joules.take(), 0.0);
    /// ```
    pub fn take(&self) -> f64 {
        loop {
            if let Some(taken) = baseline::take(&self.taken, || self.total()) {
                return taken;
            }
        }
    }

    /// Returns the total of all additions, including what was taken.
    fn total(&self) -> f64 {
        let State::Claimed(block, source) = self.handle.state() else { return 0.0 };
        let shared = block.shared_if_used().map_or(0.0, |word| float(word.load(Relaxed)));
        shards(block, source).fold(shared, |sum, word| sum + float(word.load(Relaxed)))
    }

    /// Returns the number of additions that were lost because there was no memory.
    ///
    /// ```
    /// let seconds = percid::FloatCounter::new();
    /// seconds.add(1.0);
    /// assert_eq!(seconds.unrecorded(), 0);
    /// ```
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        match self.handle.state() {
            State::Inline(count) => count as u64,
            State::Unclaimed | State::Claimed(..) => 0,
        }
    }
}

/// Returns the words of all IDs.
fn shards(block: Block, source: Option<Source>) -> impl Iterator<Item = &'static AtomicI64> {
    let ids = source.map_or(0, Source::id_count);
    (0..ids).map(move |id| block.word_of_id(id))
}

// #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
#[cfg(feature = "testing")]
impl FloatCounter {
    /// Returns the word of an ID, which holds the bits of a float.
    pub(crate) fn word_of_id(&self, id: u32) -> Option<&'static AtomicI64> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                Some(block.word_of_id(id))
            }
            _ => None,
        }
    }
}

impl Default for FloatCounter {
    fn default() -> Self {
        FloatCounter::new()
    }
}

/// A counter that starts with this value.
///
/// ```
/// let restored = percid::FloatCounter::from(0.5);
/// restored.add(1.0);
/// assert_eq!(restored.sum(), 1.5);
/// ```
impl From<f64> for FloatCounter {
    fn from(value: f64) -> FloatCounter {
        FloatCounter { handle: Handle::new(), taken: AtomicI64::new(float_bits(-value)) }
    }
}

impl fmt::Debug for FloatCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FloatCounter").field(&self.sum()).finish()
    }
}

impl Drop for FloatCounter {
    fn drop(&mut self) {
        // SAFETY: `&mut self` proves that no operation on this counter is running or will run.
        unsafe { self.handle.release(BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_adds() {
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            let counter = FloatCounter::with_source(source).expect("an available source");
            (0..1000).for_each(|n| counter.add(f64::from(n) / 4.0));
            assert_eq!(counter.sum(), 124_875.0, "{source}");
            counter.add(-124_875.0);
            assert_eq!(counter.sum(), 0.0, "{source}");
            counter.add(0.1);
            counter.add(0.2);
            assert_eq!((counter.take(), counter.sum(), counter.take()), (0.1 + 0.2, 0.0, 0.0));
            counter.add(-3.5);
            assert!((counter.take() + 3.5).abs() < 1e-15, "{source}: a difference of totals");
        }
    }

    #[test]
    fn takes_and_additions_add_up() {
        const TAKES: usize = if cfg!(miri) { 20 } else { 20_000 };
        const ADDS: usize = if cfg!(miri) { 100 } else { 100_000 };
        let counter = FloatCounter::new();
        let taken = std::thread::scope(|scope| {
            let takes = || (0..TAKES).map(|_| counter.take()).sum::<f64>();
            let takers: Vec<_> = (0..2).map(|_| scope.spawn(takes)).collect();
            for _ in 0..4 {
                scope.spawn(|| (0..ADDS).for_each(|_| counter.add(0.25)));
            }
            takers.into_iter().map(|taker| taker.join().expect("no panic")).sum::<f64>()
        });
        assert_eq!(taken + counter.sum(), ADDS as f64);
    }

    #[test]
    fn a_counter_starts_with_a_value() {
        let counter = FloatCounter::from(0.1);
        assert_eq!((counter.sum(), counter.handle.word()), (0.1, 0));
        assert_eq!((counter.take(), counter.take()), (0.1, 0.0));
        counter.add(2.0);
        assert_eq!((counter.take(), counter.sum()), (2.0, 0.0));
        assert_eq!(FloatCounter::from(0.0).sum().to_bits(), 0);
        assert_eq!(FloatCounter::from(f64::INFINITY).sum(), f64::INFINITY);
    }

    #[test]
    fn no_addition_is_lost() {
        const ADDS: usize = if cfg!(miri) { 100 } else { 100_000 };
        let counter = FloatCounter::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..ADDS).for_each(|_| counter.add(0.5)));
            }
        });
        assert_eq!(counter.sum(), 2.0 * ADDS as f64);
    }

    #[test]
    fn what_is_no_number_stays() {
        let counter = FloatCounter::new();
        counter.add(f64::INFINITY);
        assert_eq!(counter.sum(), f64::INFINITY);
        let other = FloatCounter::new();
        other.add(f64::INFINITY);
        assert_eq!(other.take(), f64::INFINITY);
        assert!(other.sum().is_nan() && other.take().is_nan());
        counter.add(f64::NEG_INFINITY);
        assert!(counter.sum().is_nan());
    }

    #[test]
    fn additions_without_memory_are_counted() {
        let counter = FloatCounter::new();
        assert!(counter.handle.replace(State::Unclaimed, State::Inline(0)));
        counter.add(0.5);
        counter.add(0.5);
        assert_eq!((counter.sum(), counter.unrecorded()), (0.0, 2));
    }

    #[test]
    fn an_unused_counter_costs_nothing() {
        let counter = FloatCounter::new();
        assert_eq!((counter.sum(), counter.handle.word()), (0.0, 0));
    }
}
