//! Counters.

use std::fmt;

use crate::cell;
use crate::handle::{Handle, Needs, State};
use crate::id::{Source, SourceError};
use crate::sys::preserving_errno;

/// The size of a counter's block.
const BYTES: usize = 8;

/// A signed 64-bit counter that every CPU updates in memory of its own.
///
/// ```
/// static REQUESTS: percid::Counter = percid::Counter::new();
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| REQUESTS.add(1)));
///     }
/// });
/// assert_eq!(REQUESTS.sum(), 4000);
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. An increment is
///   never lost and never counted twice.
/// * **Signals**: every method is async-signal-safe, also in a handler that interrupts the same
///   method, and preserves `errno`. None waits for another thread.
/// * **A sum may miss** increments that run at the same time. It contains every increment that
///   *happens before* it, so after joining threads it is exact.
/// * **Overflow**: values wrap around at 64 bits (at 60 bits for a counter beyond the two million
///   for which there is room).
/// * **Async**: no method returns a guard, so nothing is held across `.await`.
/// * **Fork**: the child's counter starts with the parent's value, on memory of its own. In a child
///   of `vfork` no method may be called: it shares the parent's memory without being a thread of
///   the parent.
/// * **Memory**: 8 bytes for the handle, and 8 bytes for every ID that used it, page by page.
///   Another 8 bytes of the shared slot once a thread needed it.
/// * **Cost**: [`add`](Counter::add) 16 to 19 instructions on x86-64, two of them stores, none
///   locked. With [`Source::Atomic`] 13 instructions, one of them locked and no other store; and a
///   call, if the build has critical sections. [`sum`](Counter::sum), [`take`](Counter::take) and
///   [`swap`](Counter::swap) read one word for every ID ever used, and so does dropping a counter. Creating one is a
///   constant; it claims its memory at first use, by one atomic addition.
/// * **Stack**: the first use in a process or on a CPU takes up to 2 KiB, every later use less. On
///   an alternate signal stack the kernel's signal frame (3.5 KiB with AVX-512) is added.
pub struct Counter {
    handle: Handle,
}

impl Counter {
    /// Creates a counter of value 0 that will use the source of the process (see
    /// [`init`](crate::init)).
    ///
    /// ```
    /// use percid::Counter;
    ///
    /// static REQUESTS: Counter = Counter::new();
    /// assert_eq!(REQUESTS.sum(), 0);
    /// ```
    #[must_use]
    pub const fn new() -> Counter {
        Counter { handle: Handle::new() }
    }

    /// Creates a counter of value 0 that uses `source`, whatever the process has chosen: for
    /// measurements and tests. Counters of different sources may be used side by side.
    ///
    /// ```
    /// use percid::{Counter, Source};
    ///
    /// let counter = Counter::with_source(Source::Atomic)?;
    /// counter.increment();
    /// assert_eq!(counter.sum(), 1);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source) -> Result<Counter, SourceError> {
        Ok(Counter { handle: Handle::with_source(source, Needs::Sections, BYTES)? })
    }

    /// Adds `n`, which may be negative.
    ///
    /// ```
    /// let balance = percid::Counter::new();
    /// balance.add(5);
    /// balance.add(-7);
    /// assert_eq!(balance.sum(), -2);
    /// ```
    #[inline(always)]
    pub fn add(&self, n: i64) {
        // SAFETY: the word of a handle; its block consists of one word.
        if !unsafe { cell::add_fast(self.handle.word(), n) } {
            self.add_slowly(n);
        }
    }

    /// Adds one.
    ///
    /// ```
    /// let hits = percid::Counter::new();
    /// hits.increment();
    /// hits.increment();
    /// assert_eq!(hits.sum(), 2);
    /// ```
    #[inline(always)]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Returns the sum over all IDs.
    ///
    /// ```
    /// let bytes = percid::Counter::new();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| bytes.add(100));
    ///     scope.spawn(|| bytes.add(20));
    /// });
    /// assert_eq!(bytes.sum(), 120);
    /// ```
    #[must_use]
    pub fn sum(&self) -> i64 {
        match self.handle.state() {
            State::Unclaimed => 0,
            State::Inline(count) => count,
            State::Claimed(block, source) => cell::sum(block, source),
        }
    }

    /// Returns the sum over all IDs, and resets it to zero. An increment that runs at the same time
    /// is contained either in the result or in the value that remains: the results of all calls and
    /// the last sum add up to the sum of all additions.
    ///
    /// Lock-free: it starts over if another `take`, or an increment without an ID, happens during
    /// it.
    ///
    /// ```
    /// let errors = percid::Counter::new();
    /// errors.add(3);
    /// assert_eq!(errors.take(), 3); // reported once a minute, say
    /// assert_eq!(errors.take(), 0);
    /// ```
    pub fn take(&self) -> i64 {
        self.swap(0)
    }

    /// Returns the sum over all IDs, and resets it to `n`, in one step. An increment that runs at
    /// the same time is contained either in the result or in the value that remains.
    ///
    /// Lock-free, as [`take`](Counter::take). It also *sets* a counter: then the result has no use.
    /// A value that is set more often than it is added to belongs in an atomic variable.
    ///
    /// ```
    /// let connections = percid::Counter::new();
    /// connections.add(3);
    /// assert_eq!(connections.swap(10), 3);
    /// connections.increment();
    ///
    /// connections.swap(100); // sets it, whatever it was
    /// assert_eq!(connections.sum(), 100);
    /// ```
    pub fn swap(&self, n: i64) -> i64 {
        loop {
            match self.handle.state() {
                State::Unclaimed if n == 0 => return 0,
                State::Unclaimed => self.settle(),
                State::Claimed(block, source) => return cell::swap(block, source, n),
                seen @ State::Inline(count) => {
                    if self.handle.replace(seen, State::Inline(n)) {
                        return count;
                    }
                }
            }
        }
    }

    /// Claims memory.
    #[cold]
    fn settle(&self) {
        preserving_errno(|| self.handle.settle(Needs::Sections, BYTES));
    }

    /// Returns the sum of each ID's additions, by ID, from 0 to the largest ever used. The rest of
    /// [`sum`](Counter::sum) is in [`shared`](Counter::shared).
    ///
    /// ```
    /// let requests = percid::Counter::new();
    /// requests.add(7);
    /// for (id, count) in requests.per_id().enumerate() {
    ///     println!("ID {id}: {count}");
    /// }
    /// assert_eq!(requests.per_id().sum::<i64>() + requests.shared(), 7);
    /// ```
    pub fn per_id(&self) -> impl Iterator<Item = i64> + '_ {
        let claimed = match self.handle.state() {
            State::Claimed(block, source) => Some((block, source)),
            State::Unclaimed | State::Inline(_) => None,
        };
        claimed.into_iter().flat_map(|(block, source)| cell::per_id(block, source))
    }

    /// Returns the sum of the additions without an ID, less everything that [`take`](Counter::take)
    /// and [`swap`](Counter::swap) have taken, and of everything that a `swap` has left.
    ///
    /// ```
    /// let requests = percid::Counter::new();
    /// requests.increment();
    /// println!("{} without an ID", requests.shared());
    /// ```
    #[must_use]
    pub fn shared(&self) -> i64 {
        match self.handle.state() {
            State::Unclaimed => 0,
            State::Inline(count) => count,
            State::Claimed(block, _) => cell::shared(block),
        }
    }

    /// Frees the memory and becomes a new counter. Returns `false` if a copy has freed it before.
    pub(crate) fn give_back(&mut self) -> bool {
        // SAFETY: `&mut self` proves that no operation on this counter is running or will run.
        unsafe { self.handle.release(BYTES) }
    }

    /// Adds in all cases except the common one: first use, no ID, an aborted section.
    #[cold]
    #[inline(never)]
    fn add_slowly(&self, n: i64) {
        cell::add_slowly(&self.handle, BYTES, 0, n);
    }
}

// #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
#[cfg(feature = "testing")]
impl Counter {
    /// Returns the word of an ID of this counter's source.
    pub(crate) fn word_of_id(&self, id: u32) -> Option<&std::sync::atomic::AtomicI64> {
        match self.handle.state() {
            State::Claimed(block, Some(_)) => Some(block.word_of_id(id)),
            _ => None,
        }
    }
}

impl Default for Counter {
    fn default() -> Self {
        Counter::new()
    }
}

/// A counter that starts with this value.
///
/// ```
/// let restored = percid::Counter::from(41);
/// restored.increment();
/// assert_eq!(restored.sum(), 42);
/// ```
impl From<i64> for Counter {
    fn from(value: i64) -> Counter {
        let counter = Counter::new();
        counter.swap(value);
        counter
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.sum()).finish()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inline_counter_counts() {
        let counter = Counter::new();
        assert!(counter.handle.replace(State::Unclaimed, State::Inline(0)));
        counter.add(5);
        counter.add(-7);
        assert_eq!((counter.sum(), counter.shared(), counter.per_id().count()), (-2, -2, 0));
        assert_eq!((counter.take(), counter.sum()), (-2, 0));
        assert_eq!((counter.swap(7), counter.swap(-8), counter.sum()), (0, 7, -8));
    }

    #[test]
    fn every_source_counts() {
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            let counter = Counter::with_source(source).expect("an available source");
            (0..1000).for_each(|n| counter.add(n));
            assert_eq!(counter.sum(), 499_500, "{source}");
            assert_eq!(counter.per_id().sum::<i64>() + counter.shared(), 499_500, "{source}");
            assert_eq!(counter.take(), 499_500, "{source}");
            assert_eq!(counter.sum(), 0, "{source}");
            counter.add(-3);
            assert_eq!((counter.take(), counter.take()), (-3, 0), "{source}");
            assert_eq!((counter.swap(5), counter.swap(i64::MIN)), (0, 5), "{source}");
            counter.add(1);
            assert_eq!((counter.swap(0), counter.sum()), (i64::MIN + 1, 0), "{source}");
        }
    }

    #[test]
    fn takes_and_increments_add_up() {
        const TAKES: usize = if cfg!(miri) { 20 } else { 20_000 };
        const ADDS: i64 = if cfg!(miri) { 100 } else { 100_000 };
        let counter = Counter::new();
        let taken = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| (0..TAKES).map(|_| counter.take()).sum::<i64>()))
                .collect();
            for _ in 0..4 {
                scope.spawn(|| (0..ADDS).for_each(|_| counter.add(1)));
            }
            takers.into_iter().map(|taker| taker.join().expect("no panic")).sum::<i64>()
        });
        assert_eq!(taken + counter.sum(), 4 * ADDS);
    }

    #[test]
    fn swaps_and_increments_add_up() {
        const SWAPS: i64 = if cfg!(miri) { 20 } else { 20_000 };
        const ADDS: i64 = if cfg!(miri) { 100 } else { 100_000 };
        let counter = Counter::new();
        let taken = std::thread::scope(|scope| {
            let swaps = || (0..SWAPS).map(|n| counter.swap(n) - n).sum::<i64>();
            let swapping: Vec<_> = (0..2).map(|_| scope.spawn(swaps)).collect();
            for _ in 0..2 {
                scope.spawn(|| (0..ADDS).for_each(|_| counter.add(1)));
            }
            swapping.into_iter().map(|thread| thread.join().expect("no panic")).sum::<i64>()
        });
        assert_eq!(taken + counter.sum(), 2 * ADDS);
    }

    #[test]
    fn a_counter_starts_with_a_value() {
        let counter = Counter::from(-5);
        assert_eq!((counter.sum(), counter.shared(), counter.per_id().sum()), (-5, -5, 0i64));
        counter.add(6);
        assert_eq!((counter.take(), counter.sum()), (1, 0));
        assert_eq!(Counter::from(0).handle.word(), 0, "no memory was claimed");
    }

    #[test]
    fn an_unused_counter_costs_nothing() {
        let counter = Counter::new();
        assert_eq!((counter.sum(), counter.take(), counter.shared()), (0, 0, 0));
        assert_eq!(counter.per_id().count(), 0);
        assert_eq!(counter.handle.word(), 0, "no memory was claimed");
    }
}
