//! Gauges: values that rise and fall.

use std::sync::{Arc, Mutex, PoisonError};

/// A value that is set, and that rises and falls. Clones are the same gauge.
///
/// ```
/// let in_flight = percid_metrics::Gauge::default();
/// in_flight.inc_by(3.0);
/// in_flight.dec_by(1.0);
/// assert_eq!(in_flight.get(), 2.0);
/// in_flight.set(0.1);
/// assert_eq!(in_flight.get(), 0.1);
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. A change that runs at the
///   same time as [`set`](Gauge::set) comes before it or after it, and is never done half.
/// * **Cost**: [`inc_by`](Gauge::inc_by) and [`dec_by`](Gauge::dec_by) are additions to a
///   [`percid::FloatCounter`], on the CPU's own line. [`set`](Gauge::set) and [`max`](Gauge::max) take a
///   lock: a value that all threads set is shared by its nature.
/// * **Signals**: the changes are async-signal-safe, the others are not.
/// * **Rounding**: what was set is read back exactly as long as nothing changes it; changes are rounded as
///   sums of floats are.
#[derive(Debug, Clone, Default)]
pub struct Gauge {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    moves: percid::FloatCounter,
    base: Mutex<Base>,
}

/// What was set last, and what the moves were at that time.
#[derive(Debug, Clone, Copy, Default)]
struct Base {
    value: f64,
    moved: f64,
}

impl Base {
    /// The value now. Without moves since it was set it is what was set, whatever a sum would be
    /// rounded to.
    fn with(self, moved: f64) -> f64 {
        if moved == self.moved { self.value } else { self.value + (moved - self.moved) }
    }
}

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: f64) {
        self.change(|_| Some(value));
    }

    /// Raises the value to `value`, if it is less or no number.
    ///
    /// ```
    /// let longest = percid_metrics::Gauge::default();
    /// [3.0, 7.0, 5.0].into_iter().for_each(|seconds| longest.max(seconds));
    /// assert_eq!(longest.get(), 7.0);
    /// ```
    pub fn max(&self, value: f64) {
        self.change(|now| (now < value || now.is_nan()).then_some(value));
    }

    /// Adds one.
    #[inline(always)]
    pub fn inc(&self) {
        self.inc_by(1.0);
    }

    /// Subtracts one.
    #[inline(always)]
    pub fn dec(&self) {
        self.dec_by(1.0);
    }

    /// Adds `n`.
    #[inline(always)]
    pub fn inc_by(&self, n: f64) {
        self.shared.moves.add(n);
    }

    /// Subtracts `n`.
    #[inline(always)]
    pub fn dec_by(&self, n: f64) {
        self.shared.moves.add(-n);
    }

    /// The value.
    pub fn get(&self) -> f64 {
        let base = *self.shared.base.lock().unwrap_or_else(PoisonError::into_inner);
        base.with(self.shared.moves.sum())
    }

    fn change(&self, next: impl FnOnce(f64) -> Option<f64>) {
        let mut base = self.shared.base.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = self.shared.moves.sum();
        if let Some(value) = next(base.with(moved)) {
            *base = Base { value, moved };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read_back_whatever_was_moved_before() {
        let gauge = Gauge::default();
        for value in [0.1, -7.3, 1e300, f64::INFINITY, 0.0] {
            gauge.inc_by(3.7);
            gauge.set(value);
            assert_eq!(gauge.get(), value);
        }
        gauge.set(f64::NAN);
        assert!(gauge.get().is_nan());
        gauge.max(2.0);
        assert_eq!(gauge.get(), 2.0);
    }

    #[test]
    fn moves_of_many_threads_add_up() {
        let gauge = Gauge::default();
        gauge.set(5.0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| (gauge.inc(), gauge.dec(), gauge.inc()).0));
            }
        });
        assert_eq!(gauge.get(), 40_005.0);
    }

    #[test]
    fn the_largest_of_many_threads_stays() {
        let gauge = Gauge::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let gauge = &gauge;
                scope.spawn(move || (0..1000).for_each(|n| gauge.max((n * 4 + thread).into())));
            }
        });
        assert_eq!(gauge.get(), 3999.0);
    }
}
