//! Families: the series of one metric, by the values of their labels.

use std::ffi::{c_char, c_int};

use percid_metrics::Labelled;
use percid_metrics::registry::Metric;

use super::error;
use super::series::{Buckets, FloatCounter, Gauge};
use super::texts;
use crate::barrier::{guard, uncancelled};
use crate::callback::count;
use crate::counter::Counter;
use crate::errno;
use crate::headroom;
use crate::registry::{Object, Registry};

/// The series of one metric, distinguished by the values of its labels; created by
/// percid_family_create().
///
/// percid_family_counter() and the similar functions find the series with the given values, or
/// create it. The stored pointer is valid until the registry is destroyed: a program that knows the
/// values beforehand looks the series up once and keeps the pointer.
///
/// Cost: values that this CPU has used before are found in memory of this CPU, by their hash and a
/// comparison, without a locked instruction: about 30 ns for two short values. Others are looked up
/// in a map, under a lock.
/// Limit: the settings limit the number of series. One more series contains everything beyond the
/// limit: its labels all have the settings' overflow value. So nothing is lost, and a client that
/// always sends new values does not fill a server's memory.
/// Threads: any number of threads may use it at once.
/// Signals: not for signal handlers. A stored series may be used there as its type permits.
/// Fork: stored series count in the child. In the child of a process that had several threads,
/// looking up values that are new to a CPU, and making a page, may wait forever: another thread may
/// have held the lock.
/// Memory: for each series about 150 bytes, its values, and the memory of its type; for each ID
/// that looked it up about 100 bytes more, for at most 8192 series.
#[derive(Debug)]
pub struct Family {
    labels: usize,
    series: Series,
}

/// The series, which the registry shares.
#[derive(Debug)]
pub(super) enum Series {
    Counters(Labelled<percid_metrics::Counter>),
    FloatCounters(Labelled<percid_metrics::FloatCounter>),
    Gauges(Labelled<percid_metrics::Gauge>),
    Buckets(Labelled<percid_metrics::Histogram>),
}

impl Family {
    /// Creates a family with this number of labels.
    pub(super) fn new(labels: usize, series: Series) -> Family {
        Family { labels, series }
    }
}

pub(super) static FAMILIES: Registry<Family> = Registry::new();

impl Object for Family {
    type Inner = Family;
    const TYPE: u64 = 44;
}

/// Stores the series with these values in `counter`: `count` texts in UTF-8, in the order of the
/// labels' names. If there is no such series, it is created with value 0; beyond the family's limit
/// it is the series of all others.
///
/// The series is an ordinary percid_counter, so percid_counter_add() is inline. It is not moved
/// until the registry is destroyed, and must not be destroyed by itself. Taking from it decreases
/// it, which a page's reader interprets as a restart.
///
/// Returns 0; -EINVAL for NULL, if `count` is not the number of labels, or if the family has other
/// series than counters; -EILSEQ if a value is not UTF-8; -ENOMEM; -EBADF if the registry is
/// destroyed. On error `counter` becomes NULL.
///
/// # Safety
///
/// `family` is [a handle](crate#safety). `values` are [texts](crate#safety), `count` of them.
/// `counter` is [memory](crate#safety) for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_family_counter(
    family: *const Family,
    values: *const *const c_char,
    count: usize,
    counter: *mut *mut Counter,
) -> c_int {
    let labelled = |family: &'static Family| match &family.series {
        Series::Counters(counters) => Some(counters),
        _ => None,
    };
    let word = |found: &percid_metrics::Counter| {
        let found: &percid::Counter = found.as_ref();
        std::ptr::from_ref(found).cast_mut().cast()
    };
    // SAFETY: the caller guarantees a handle, and pointers that are NULL or valid.
    unsafe { look_up(family, labelled, values, count, counter, word) }
}

/// Does the same as percid_family_counter(), for a family of sums of floats.
///
/// # Safety
///
/// The contract of [`percid_family_counter`] holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_family_float_counter(
    family: *const Family,
    values: *const *const c_char,
    count: usize,
    counter: *mut *mut FloatCounter,
) -> c_int {
    let labelled = |family: &'static Family| match &family.series {
        Series::FloatCounters(counters) => Some(counters),
        _ => None,
    };
    // SAFETY: the caller guarantees a handle, and pointers that are NULL or valid.
    unsafe { look_up(family, labelled, values, count, counter, FloatCounter::from_metric) }
}

/// Does the same as percid_family_counter(), for a family of gauges.
///
/// # Safety
///
/// The contract of [`percid_family_counter`] holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_family_gauge(
    family: *const Family,
    values: *const *const c_char,
    count: usize,
    gauge: *mut *mut Gauge,
) -> c_int {
    let labelled = |family: &'static Family| match &family.series {
        Series::Gauges(gauges) => Some(gauges),
        _ => None,
    };
    // SAFETY: the caller guarantees a handle, and pointers that are NULL or valid.
    unsafe { look_up(family, labelled, values, count, gauge, Gauge::from_metric) }
}

/// Does the same as percid_family_counter(), for a family of histograms.
///
/// # Safety
///
/// The contract of [`percid_family_counter`] holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_family_buckets(
    family: *const Family,
    values: *const *const c_char,
    count: usize,
    buckets: *mut *mut Buckets,
) -> c_int {
    let labelled = |family: &'static Family| match &family.series {
        Series::Buckets(all) => Some(all),
        _ => None,
    };
    // SAFETY: the caller guarantees a handle, and pointers that are NULL or valid.
    unsafe { look_up(family, labelled, values, count, buckets, Buckets::from_metric) }
}

/// # Safety
///
/// The contract of [`percid_family_counter`] holds.
#[inline(always)]
unsafe fn look_up<M: Metric, C>(
    family: *const Family,
    labelled: impl FnOnce(&'static Family) -> Option<&'static Labelled<M>>,
    values: *const *const c_char,
    count: usize,
    place: *mut *mut C,
    address: impl Fn(&M) -> *mut C,
) -> c_int {
    if place.is_null() {
        return -libc::EINVAL;
    }
    let found = || {
        // SAFETY: the caller guarantees a handle. The object is used within this call only.
        let family: &'static Family = unsafe { Registry::object(family) }?;
        let labelled = labelled(family).filter(|_| count == family.labels).ok_or(-libc::EINVAL)?;
        // SAFETY: the caller guarantees texts, `count` of them.
        let texts = unsafe { texts::list(values, count) }?;
        // SAFETY: the caller guarantees texts, and none is NULL.
        let seen = guard(None, || unsafe { seen(labelled, texts) });
        seen.map_or_else(|| first_seen(labelled, texts), Ok).map(&address)
    };
    let found = found();
    // SAFETY: the caller guarantees memory of this size, or NULL.
    unsafe { place.write(found.unwrap_or(std::ptr::null_mut())) };
    found.err().unwrap_or(0)
}

/// Maximum number of values whose lengths are computed once for the two look-ups.
const FEW: usize = 8;

/// Returns the series if this CPU has used the values before.
///
/// # Safety
///
/// The pointers are the caller's texts, and none is NULL.
#[inline(always)]
unsafe fn seen<'f, M: Metric>(labelled: &'f Labelled<M>, texts: &[*const c_char]) -> Option<&'f M> {
    // SAFETY: the caller guarantees texts, and none is NULL.
    let values = texts.iter().map(|&text| unsafe { texts::bytes(text) });
    if texts.len() > FEW {
        return labelled.seen(values);
    }
    let mut few: [&[u8]; FEW] = [&[]; FEW];
    few.iter_mut().zip(values).for_each(|(place, value)| *place = value);
    labelled.seen(few.iter().take(texts.len()))
}

/// Returns the series of values that this CPU has not used before.
///
/// # Errors
///
/// See [`percid_family_counter`].
#[cold]
#[inline(never)]
fn first_seen<'f, M: Metric>(
    labelled: &'f Labelled<M>,
    texts: &[*const c_char],
) -> Result<&'f M, c_int> {
    errno::preserved(|| {
        uncancelled(Err(-libc::EFAULT), || {
            headroom::ask()?;
            // SAFETY: the caller guarantees texts, and `look_up` has checked that none is NULL.
            let values = texts.iter().map(|&text| unsafe { texts::bytes(text) });
            labelled.get(values).map_err(error::of_label)
        })
    })
}

/// Returns the number of series, including the one beyond the limit if it was needed; -EINVAL for
/// NULL, -EBADF if the registry is destroyed.
///
/// # Safety
///
/// `family` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_family_series(family: *const Family) -> i64 {
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(family) } {
        Ok(family) => guard(i64::from(-libc::EFAULT), || count(family.series.len())),
        Err(error) => error.into(),
    }
}

/// Returns the number of look-ups of values beyond the limit; 0 if there is no such family.
///
/// # Safety
///
/// `family` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_family_refused(family: *const Family) -> u64 {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(family) }.map_or(0, |family| family.series.refused())
}

impl Series {
    fn len(&self) -> usize {
        match self {
            Series::Counters(all) => all.len(),
            Series::FloatCounters(all) => all.len(),
            Series::Gauges(all) => all.len(),
            Series::Buckets(all) => all.len(),
        }
    }

    fn refused(&self) -> u64 {
        match self {
            Series::Counters(all) => all.refused(),
            Series::FloatCounters(all) => all.refused(),
            Series::Gauges(all) => all.refused(),
            Series::Buckets(all) => all.refused(),
        }
    }
}
