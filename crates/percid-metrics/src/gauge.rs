//! Gauges: values that rise and fall.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
/// * **Setting**: [`set`](Gauge::set) sets exactly the given value, whatever the value was before:
///   NaN, an infinity, or a number of any size.
/// * **Threads**: any number of threads may call every method at once. A change that ended before
///   `set` began is replaced by it. A change that began after `set` ended is added to the set
///   value. A change that runs concurrently takes effect before or after `set`, never partially.
/// * **Cost**: [`inc_by`](Gauge::inc_by) and [`dec_by`](Gauge::dec_by) by multiples of 1/256 below
///   2^31 are additions to a [`percid::Counter`], on the CPU's own cache line. All other changes
///   are additions to one word that all CPUs share. [`set`](Gauge::set) and [`max`](Gauge::max)
///   take a lock, because a value that all threads set is shared in any case.
/// * **Signals**: `inc`, `dec`, `inc_by` and `dec_by` are async-signal-safe, the others are not.
/// * **Rounding**: multiples of 1/256 below 2^31 are added exactly, if they change the value by
///   less than 2^54 between two calls that set or read it. Other changes are rounded like sums of
///   floats.
#[derive(Debug, Clone, Default)]
pub struct Gauge {
    shared: Arc<Shared>,
}

/// Number of parts of one. Changes by whole parts are added on the CPU's own cache line.
const PARTS: f64 = 256.0;

/// Size, in parts, from which changes are added to the word that all CPUs share. A power of two.
const LARGE: f64 = (1u64 << 39) as f64;

/// Number of parts above which `get` moves them into the base, before the counter wraps. So many
/// parts are rounded like floats.
const FAR: u64 = 1 << 61;

#[derive(Debug, Default)]
struct Shared {
    /// Parts, modulo 2^64. Their sum is exact, and so is the difference to an earlier sum.
    parts: percid::Counter,
    /// The sum of all other changes since the value was set.
    others: Others,
    base: Mutex<Base>,
}

/// The value that was set last, and the number of parts at that time.
#[derive(Debug, Clone, Copy, Default)]
struct Base {
    value: f64,
    parts: i64,
}

impl Base {
    /// Returns the current value. If nothing changed since the value was set, returns the set value
    /// with its sign.
    fn value(self, parts: i64, others: f64) -> f64 {
        match parts.wrapping_sub(self.parts) {
            0 if others == 0.0 => self.value,
            moved => self.value + moved as f64 / PARTS + others,
        }
    }
}

/// A sum of floats, stored as the bits of a float.
#[derive(Debug, Default)]
struct Others(AtomicU64);

impl Others {
    fn add(&self, n: f64) {
        let sum = |bits| Some((f64::from_bits(bits) + n).to_bits());
        // It cannot fail: `sum` always returns `Some`.
        let _ = self.0.fetch_update(Relaxed, Relaxed, sum);
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    fn take(&self) -> f64 {
        f64::from_bits(self.0.swap(0, Relaxed))
    }
}

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: f64) {
        let mut base = self.base();
        self.shared.others.take();
        *base = Base { value, parts: self.shared.parts.sum() };
    }

    /// Raises the value to `value`, if it is less or NaN.
    ///
    /// ```
    /// let longest = percid_metrics::Gauge::default();
    /// [3.0, 7.0, 5.0].into_iter().for_each(|seconds| longest.max(seconds));
    /// assert_eq!(longest.get(), 7.0);
    /// ```
    pub fn max(&self, value: f64) {
        let mut base = self.base();
        // Changes that are added from now on take effect after this call.
        let others = self.shared.others.take();
        let parts = self.shared.parts.sum();
        let now = base.value(parts, others);
        // #[gamma::skip(relational.lt_to_le, reason = "what is equal may be set again")]
        if now < value || now.is_nan() {
            *base = Base { value, parts };
        } else {
            self.shared.others.add(others);
        }
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
        let parts = n * PARTS;
        if parts.abs() < LARGE && parts as i64 as f64 == parts {
            self.shared.parts.add(parts as i64);
        } else {
            self.add_other(n);
        }
    }

    /// Subtracts `n`.
    #[inline(always)]
    pub fn dec_by(&self, n: f64) {
        self.inc_by(-n);
    }

    /// Returns the value.
    pub fn get(&self) -> f64 {
        let mut base = self.base();
        let (parts, others) = (self.shared.parts.sum(), self.shared.others.get());
        let value = base.value(parts, others);
        // #[gamma::skip(cond.always_true, cond.negate, relational, reason = "earlier does no harm")]
        if parts.wrapping_sub(base.parts).unsigned_abs() > FAR {
            *base = Base { value: base.value(parts, 0.0), parts };
        }
        value
    }

    #[cold]
    #[inline(never)]
    fn add_other(&self, n: f64) {
        self.shared.others.add(n);
    }

    fn base(&self) -> MutexGuard<'_, Base> {
        self.shared.base.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn what_was_added_before_is_not_seen_after_it_was_set() {
        for before in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e17, -1e300, 0.1, 3e9, 5.0] {
            let gauge = Gauge::default();
            gauge.inc_by(before);
            gauge.dec_by(before / 2.0);
            gauge.set(0.0);
            assert_eq!(gauge.get(), 0.0, "after {before}");
            for after in [1.0, 0.1, 1e-9, 0.25, -7e12] {
                gauge.inc_by(after);
                assert_eq!(gauge.get(), after, "{before}, then {after}");
                gauge.set(-0.0);
                assert!(gauge.get().is_sign_negative(), "{before}, then {after}");
            }
        }
    }

    /// A gauge that one thread uses behaves like a float. Changes are multiples of 2^-10 and below
    /// 2^41, so that the sum of floats is exact in any order.
    #[test]
    fn a_gauge_does_what_a_float_does() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            let (gauge, mut model) = (Gauge::default(), 0.0f64);
            let mut done = Vec::new();
            for _ in 0..100 {
                let bound = 1i64 << random.u32(1..51);
                let n = match random.u8(0..20) {
                    0 => f64::NAN,
                    1 => f64::INFINITY,
                    2 => -f64::INFINITY,
                    3..8 => random.i64(-9..10) as f64,
                    _ => random.i64(-bound..bound) as f64 / 1024.0,
                };
                let call = random.u8(0..9);
                done.push((call, n));
                match call {
                    0..3 => (gauge.inc_by(n), model += n).0,
                    3..6 => (gauge.dec_by(n), model -= n).0,
                    6 => (gauge.set(n), model = n).0,
                    7 => {
                        gauge.max(n);
                        if model < n || model.is_nan() {
                            model = n;
                        }
                    }
                    _ => (gauge.inc(), model += 1.0).0,
                }
                let value = gauge.get();
                let is_same = value == model || (value.is_nan() && model.is_nan());
                assert!(is_same, "{value}, not {model}; seed {seed}: {done:?}");
            }
        }
    }

    /// Each thread adds one kind of change and subtracts it again, so that at most one of each is
    /// missing when the value is set. After all threads have ended, the value is the last set value
    /// plus the later changes.
    #[test]
    fn a_gauge_is_set_beside_changes() {
        const ROUNDS: u32 = if cfg!(miri) { 20 } else { 20_000 };
        let gauge = Gauge::default();
        std::thread::scope(|scope| {
            for change in [1.0, 0.5, 1e17, f64::INFINITY] {
                let gauge = &gauge;
                scope.spawn(move || {
                    (0..ROUNDS).for_each(|_| (gauge.inc_by(change), gauge.dec_by(change)).0);
                });
            }
            let gauge = &gauge;
            scope.spawn(move || (0..ROUNDS).for_each(|n| gauge.set(n.into())));
        });
        gauge.set(5.0);
        assert_eq!(gauge.get(), 5.0);
        gauge.inc_by(1.0);
        gauge.inc_by(0.1);
        assert_eq!(gauge.get(), 6.1);
    }

    /// Each change takes effect as a whole, before or after the value is set: each thread adds to
    /// its own digits.
    #[test]
    fn no_change_is_lost_that_begins_after_it_was_set() {
        const ROUNDS: u32 = if cfg!(miri) { 5 } else { 500 };
        for _ in 0..ROUNDS {
            let gauge = Gauge::default();
            let is_set = std::sync::atomic::AtomicBool::new(false);
            let changes = [1.0, 256.0, (1u64 << 33) as f64];
            let counted = std::thread::scope(|scope| {
                let threads = changes.map(|change| {
                    let (gauge, is_set) = (&gauge, &is_set);
                    scope.spawn(move || {
                        let (mut after, mut all) = (0u32, 0u32);
                        while after < 3 {
                            let is_after = is_set.load(std::sync::atomic::Ordering::Acquire);
                            if !is_after && all == 200 {
                                std::thread::yield_now();
                                continue;
                            }
                            after += u32::from(is_after);
                            gauge.inc_by(change);
                            all += 1;
                        }
                        (after, all)
                    })
                });
                gauge.set(0.0);
                is_set.store(true, std::sync::atomic::Ordering::Release);
                threads.map(|thread| thread.join().expect("no panic"))
            });
            let value = gauge.get() as u64;
            let digits = [value & 255, (value >> 8) & 0xff_ffff, value >> 33];
            for (digit, (after, all)) in digits.into_iter().zip(counted) {
                let seen = u64::from(after)..=u64::from(all);
                assert!(seen.contains(&digit), "{digit} of {seen:?}");
            }
        }
    }

    #[test]
    fn sums_beyond_the_counter_do_not_wrap_between_two_reads() {
        let (gauge, large) = (Gauge::default(), ((1u64 << 31) - 1) as f64);
        let mut sum = 0.0f64;
        for _ in 0..if cfg!(miri) { 2 } else { 40 } {
            // 2^59 parts at a time.
            gauge.shared.parts.add((large * PARTS) as i64 * (1 << 20));
            sum += large * f64::from(1 << 20);
            let value = gauge.get();
            assert!((value / sum - 1.0).abs() < 1e-12, "{value}, not {sum}");
        }
    }

    #[test]
    fn small_multiples_are_added_on_the_cpus_line_and_others_in_the_shared_word() {
        let (large, part) = ((1u64 << 31) as f64, 1.0 / 256.0);
        for (n, is_small) in [
            (1.0, true),
            (-3.5, true),
            (part, true),
            (part / 2.0, false),
            (large - part, true),
            (part - large, true),
            (large, false),
            (-large, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            let gauge = Gauge::default();
            gauge.inc_by(n);
            let parts = if is_small { (n * 256.0) as i64 } else { 0 };
            assert_eq!(gauge.shared.parts.sum(), parts, "{n}");
            assert_eq!(gauge.shared.others.get() != 0.0, !is_small, "{n}");
        }
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
