//! Counters of events.

use std::sync::Arc;

/// A number of events that only grows. Clones are the same counter.
///
/// ```
/// let requests = percid_metrics::Counter::default();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| requests.inc()));
///     }
/// });
/// assert_eq!(requests.get(), 4000);
/// ```
///
/// It is a [`percid::Counter`] with the same contract, read as an unsigned number modulo 2^64.
/// Unlike `inc` of other counters, this one does not return the previous value: that would need one
/// word for all CPUs.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    counted: Arc<percid::Counter>,
}

impl Counter {
    /// Counts one event.
    #[inline(always)]
    pub fn inc(&self) {
        self.counted.add(1);
    }

    /// Counts `n` events.
    ///
    /// ```
    /// let bytes = percid_metrics::Counter::default();
    /// bytes.inc_by(u64::MAX);
    /// bytes.inc_by(3);
    /// assert_eq!(bytes.get(), 2, "modulo 2^64");
    /// ```
    #[inline(always)]
    pub fn inc_by(&self, n: u64) {
        // Two's complement: the sum is right modulo 2^64, signed or not.
        self.counted.add(n as i64);
    }

    /// Returns the number of counted events. Reads a word for every ID ever used.
    pub fn get(&self) -> u64 {
        self.counted.sum() as u64
    }
}

impl AsRef<percid::Counter> for Counter {
    /// Returns the underlying counter.
    fn as_ref(&self) -> &percid::Counter {
        &self.counted
    }
}

/// A sum of floats that only grows, such as seconds. Clones are the same counter.
///
/// ```
/// let seconds = percid_metrics::FloatCounter::default();
/// seconds.inc_by(0.25);
/// assert_eq!(seconds.get(), 0.25);
/// ```
///
/// It is a [`percid::FloatCounter`] with the same contract.
#[derive(Debug, Clone, Default)]
pub struct FloatCounter {
    counted: Arc<percid::FloatCounter>,
}

impl FloatCounter {
    /// Adds `n`. Adds nothing if `n` is negative or NaN, because a counter never falls.
    ///
    /// ```
    /// let seconds = percid_metrics::FloatCounter::default();
    /// seconds.inc_by(-1.0);
    /// seconds.inc_by(f64::NAN);
    /// assert_eq!(seconds.get(), 0.0);
    /// ```
    #[inline(always)]
    pub fn inc_by(&self, n: f64) {
        // #[gamma::skip(relational.ge_to_gt, reason = "zero adds nothing")]
        if n >= 0.0 {
            self.counted.add(n);
        }
    }

    /// Returns the sum.
    pub fn get(&self) -> f64 {
        self.counted.sum()
    }
}

impl AsRef<percid::FloatCounter> for FloatCounter {
    /// Returns the underlying counter.
    fn as_ref(&self) -> &percid::FloatCounter {
        &self.counted
    }
}
