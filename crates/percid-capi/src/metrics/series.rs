//! The series of families except counters, and their operations.

use std::ffi::c_int;

use percid_metrics::Histogram;

use crate::barrier::guard;
use crate::callback::count;
use crate::copies;
use crate::errno;
use crate::headroom;
use crate::list;

/// A sum of floats that only grows, such as seconds: a series of a family.
///
/// Every CPU adds to its own memory. Each CPU's sum is rounded as floats are, and so is their
/// total.
///
/// Threads: any number of threads may use it at once.
/// Signals: adding is async-signal-safe and leaves errno alone.
#[derive(Debug)]
pub struct FloatCounter(percid::FloatCounter);

/// A value that can be set, increased and decreased: a series of a family.
///
/// Threads: any number of threads may use it at once. A change that runs at the same time as
/// percid_gauge_set() is applied before or after it, and never partially.
/// Signals: percid_gauge_add() is async-signal-safe and leaves errno alone; the rest is not.
/// Cost: additions go to memory of the CPU. Setting takes a lock, because all threads set the same
/// value.
#[derive(Debug)]
pub struct Gauge(percid_metrics::Gauge);

/// Counts of values in buckets with upper limits chosen by the program, and their exact sum: a
/// series of a family, on a page a histogram.
///
/// A limit belongs to its bucket, like `le`. A value that is not a number belongs to the last
/// bucket, and makes the sum not a number.
///
/// Threads: any number of threads may use it at once. Count and sum change in one step.
/// Signals: recording is async-signal-safe and leaves errno alone; reading is not.
/// Memory: for every ID that used it about 24 bytes and 8 for each limit, rounded up to a power of
/// two.
#[derive(Debug)]
pub struct Buckets(Histogram);

impl FloatCounter {
    pub(super) fn from_metric(counter: &percid_metrics::FloatCounter) -> *mut FloatCounter {
        let counter: &percid::FloatCounter = counter.as_ref();
        std::ptr::from_ref(counter).cast_mut().cast()
    }
}

impl Gauge {
    pub(super) fn from_metric(gauge: &percid_metrics::Gauge) -> *mut Gauge {
        std::ptr::from_ref(gauge).cast_mut().cast()
    }
}

impl Buckets {
    pub(super) fn from_metric(histogram: &Histogram) -> *mut Buckets {
        std::ptr::from_ref(histogram).cast_mut().cast()
    }
}

/// Adds `n`, unless it is negative or not a number, because a counter never decreases. Costs about
/// 2 ns.
///
/// # Safety
///
/// `counter` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_float_counter_add(counter: *mut FloatCounter, n: f64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Ok(counter) = (unsafe { copies::own(counter.cast_const()) }) else { return };
    if n >= 0.0 {
        guard((), || counter.0.add(n));
    }
}

/// Returns the sum; 0 for NULL. Costs the reading of one word for every ID ever used.
///
/// # Safety
///
/// `counter` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_float_counter_sum(counter: *const FloatCounter) -> f64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let counter = unsafe { copies::own(counter) };
    guard(0.0, || counter.map_or(0.0, |counter| counter.0.sum()))
}

/// Adds `n`, which may be negative. Costs about 2 ns.
///
/// # Safety
///
/// `gauge` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_gauge_add(gauge: *mut Gauge, n: f64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    if let Some(gauge) = unsafe { gauge.as_ref() } {
        guard((), || gauge.0.inc_by(n));
    }
}

/// Sets the value, which is read back exactly unless it is changed.
///
/// # Safety
///
/// `gauge` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_gauge_set(gauge: *mut Gauge, value: f64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    if let Some(gauge) = unsafe { gauge.as_ref() } {
        guard((), || gauge.0.set(value));
    }
}

/// Raises the value to `value`, if it is less or not a number.
///
/// # Safety
///
/// `gauge` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_gauge_max(gauge: *mut Gauge, value: f64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    if let Some(gauge) = unsafe { gauge.as_ref() } {
        guard((), || gauge.0.max(value));
    }
}

/// Returns the value; 0 for NULL.
///
/// # Safety
///
/// `gauge` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_gauge_value(gauge: *const Gauge) -> f64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let gauge = unsafe { gauge.as_ref() };
    guard(0.0, || gauge.map_or(0.0, |gauge| gauge.0.get()))
}

/// Counts a value. Costs about 5 ns.
///
/// # Safety
///
/// `buckets` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_buckets_record(buckets: *mut Buckets, value: f64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    if let Some(buckets) = unsafe { buckets.as_ref() } {
        guard((), || buckets.0.observe(value));
    }
}

/// Counts a value `times` times, in one step.
///
/// # Safety
///
/// `buckets` is [a series](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_buckets_record_many(buckets: *mut Buckets, value: f64, times: u64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    if let Some(buckets) = unsafe { buckets.as_ref() } {
        guard((), || buckets.0.observe_many(value, times));
    }
}

/// Returns the number of buckets, which is one more than that of limits. Writes the numbers of
/// values in the first `capacity` buckets, not including those of other buckets, to `counts`, and
/// the sum of all values to `sum` unless it is NULL. With `capacity` 0 `counts` may be NULL;
/// returns 0 if `buckets` is NULL, -ENOMEM if there is no memory.
///
/// # Safety
///
/// `buckets` is [a series](crate#safety). `counts` is [memory](crate#safety) for `capacity` of
/// them, and `sum` for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_buckets_read(
    buckets: *const Buckets,
    counts: *mut u64,
    capacity: usize,
    sum: *mut f64,
) -> i64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(buckets) = (unsafe { buckets.as_ref() }) else { return 0 };
    if let Err(error) = errno::preserved(headroom::ask) {
        return i64::from(error);
    }
    guard(i64::from(-libc::EFAULT), || {
        let all = buckets.0.snapshot();
        if !sum.is_null() {
            // SAFETY: the caller guarantees memory for a number, and it is not NULL.
            unsafe { sum.write(all.sum) };
        }
        let each = all.buckets.iter().map(|&(_, count)| count);
        // SAFETY: the caller guarantees memory for `capacity` counts, or NULL.
        count(unsafe { list::write(each, counts, capacity) })
    })
}

/// Counts `counts[n]` values in each bucket `n`, and adds `sum`, the sum of all of them, in one step:
/// percid_buckets_read() sees all or nothing of it. Values beyond the last bucket belong to that. Has
/// no effect if all `counts` are 0.
///
/// Returns 0; -EINVAL for NULL, or if `count` is more than 2048, the maximum number of buckets.
/// Async-signal-safe.
///
/// # Safety
///
/// `buckets` is [a series](crate#safety). `counts` is NULL or points to `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_buckets_record_all(
    buckets: *mut Buckets,
    counts: *const u64,
    count: usize,
    sum: f64,
) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let buckets = unsafe { buckets.as_ref() };
    let Some(buckets) = buckets.filter(|_| !counts.is_null() && count <= percid::Buckets::MAX)
    else {
        return -libc::EINVAL;
    };
    // SAFETY: the caller guarantees `count` of them, and the pointer is not NULL.
    let counts = unsafe { std::slice::from_raw_parts(counts, count) };
    guard(-libc::EFAULT, || {
        // Series of families are never native.
        buckets.0.observe_all(counts, sum);
        0
    })
}

/// Takes all values out, and leaves zeros. Writes the numbers of values in all buckets to `counts`,
/// and the sum of all values to `sum` unless it is NULL. Nothing is lost or taken twice, except what
/// cannot be recorded.
///
/// Returns the number of buckets, as percid_buckets_read() does. If that is more than `capacity`,
/// nothing is taken or written.
///
/// # Safety
///
/// `buckets` is [a series](crate#safety). `counts` is [memory](crate#safety) for `capacity` of
/// them, and `sum` for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_buckets_take(
    buckets: *mut Buckets,
    counts: *mut u64,
    capacity: usize,
    sum: *mut f64,
) -> i64 {
    // SAFETY: the caller guarantees the same; NULL is no memory.
    let number = unsafe {
        percid_buckets_read(buckets.cast_const(), std::ptr::null_mut(), 0, std::ptr::null_mut())
    };
    let has_room = !counts.is_null() && usize::try_from(number).is_ok_and(|all| all <= capacity);
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(buckets) = (unsafe { buckets.as_ref() }).filter(|_| has_room) else { return number };
    guard(i64::from(-libc::EFAULT), || {
        let Some(all) = buckets.0.take() else { return 0 };
        if !sum.is_null() {
            // SAFETY: the caller guarantees memory for a number, and it is not NULL.
            unsafe { sum.write(all.sum) };
        }
        let each = all.buckets.iter().map(|&(_, count)| count);
        // SAFETY: the caller guarantees memory for `capacity` counts, and it is not NULL.
        count(unsafe { list::write(each, counts, capacity) })
    })
}

/// The type of a family's series. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counters of events: percid_counter.
    Counter = 1,
    /// Sums of floats that only grow: percid_float_counter.
    FloatCounter = 2,
    /// Values that increase and decrease: percid_gauge.
    Gauge = 3,
    /// Histograms: percid_buckets.
    Buckets = 4,
}

impl Kind {
    pub(super) fn from_number(number: c_int) -> Option<Kind> {
        let all = [Kind::Counter, Kind::FloatCounter, Kind::Gauge, Kind::Buckets];
        all.into_iter().find(|&kind| kind as c_int == number)
    }
}
