//! Histograms. Recording is in `include/percid_inline.h`, in the caller's code.

use std::ffi::c_int;

use percid::histogram::Snapshot as Counts;

use crate::barrier::guard;
use crate::copies;
use crate::destroyed;
use crate::errno;
use crate::headroom;
use crate::list;
use crate::source::source;

/// A histogram of unsigned 64-bit values that every CPU updates in its own memory.
///
/// Values below 128 have a bucket each; above that there are 64 buckets between two powers of two.
/// The reported value is the middle of the bucket, at most 1/128 of the value away from it.
///
/// It is valid when all its bytes are zero: initialise it with PERCID_HISTOGRAM_INIT, or with
/// calloc(). It may be moved (but not copied) while no thread uses it.
///
/// Threads: any number of threads may use it at once. A record is never lost and never counted
/// twice.
/// Signals: recording is async-signal-safe and leaves errno alone; the rest is not.
/// Fork: the child's histogram starts with the parent's counts, on its own memory.
/// Memory: these 8 bytes, and address space for 3776 buckets (29.5 KiB) for every ID. Only touched
/// pages cost memory: values within a factor of 256 touch one or two.
#[repr(C)]
#[derive(Debug)]
pub struct Histogram {
    /// Private to the library.
    word: u64,
}

const _: () = {
    assert!(size_of::<Histogram>() == size_of::<percid::Histogram>());
    assert!(align_of::<Histogram>() == align_of::<percid::Histogram>());
    // SAFETY: both types have eight bytes, and every value of them is a valid `u64`.
    let word: u64 = unsafe { std::mem::transmute(percid::Histogram::new()) };
    assert!(word == 0, "PERCID_HISTOGRAM_INIT is a new histogram");
    assert!(
        percid::Histogram::RELATIVE_ERROR == 1.0 / 128.0,
        "PERCID_HISTOGRAM_RELATIVE_ERROR is the library's"
    );
};

/// The content of a histogram at one time: 29.5 KiB that belong to the caller.
///
/// Functions that change a snapshot must not run at the same time as others on the same one.
#[derive(Debug)]
pub struct Snapshot(Counts);

/// A bucket of a snapshot.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    /// The smallest value of the bucket.
    pub low: u64,
    /// The largest value of the bucket.
    pub high: u64,
    /// Number of values in the bucket.
    pub count: u64,
}

/// Returns a reference to the library's histogram; `None` for NULL and for another copy's
/// histogram.
///
/// # Safety
///
/// `histogram` is NULL or points to a histogram that outlives `'a`.
unsafe fn histogram<'a>(histogram: *const Histogram) -> Option<&'a percid::Histogram> {
    // SAFETY: size and alignment are those of the library's type, all of whose changes are atomic.
    unsafe { copies::own(histogram.cast::<percid::Histogram>()) }.ok()
}

/// Counts a value.
///
/// C and C++ programs have this as an inline function, see percid_inline.h; the function is for
/// programs that cannot include that file.
///
/// # Safety
///
/// `histogram` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_record(histogram: *mut Histogram, value: u64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { percid_histogram_record_slow(histogram, value, 1) }
}

/// Counts a value `times` times, in one step. Otherwise like percid_histogram_record().
///
/// # Safety
///
/// `histogram` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_record_many(
    histogram: *mut Histogram,
    value: u64,
    times: u64,
) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { percid_histogram_record_slow(histogram, value, times) }
}

/// Handles all cases except the common one of percid_histogram_record_many(). In the common case it
/// does the same as the inline function, by a call, and takes 1 ns more.
///
/// # Safety
///
/// `histogram` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_record_slow(
    histogram: *mut Histogram,
    value: u64,
    times: u64,
) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    if let Some(histogram) = unsafe { self::histogram(histogram) } {
        guard((), || histogram.record_many(value, times));
    }
}

/// Initialises `histogram`, whose old content is ignored, as an empty histogram that uses this
/// source, independently of the process's source: for measurements and tests. Returns the same
/// values as percid_counter_with_source().
///
/// # Safety
///
/// `histogram` is [memory](crate#safety) for a histogram.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_with_source(
    histogram: *mut Histogram,
    source: c_int,
) -> c_int {
    let Some(source) = self::source(source).filter(|_| !histogram.is_null()) else {
        return -libc::EINVAL;
    };
    guard(-libc::EFAULT, || match percid::Histogram::with_source(source) {
        Ok(made) => {
            // SAFETY: the caller guarantees memory for a histogram, and it is not NULL.
            unsafe { histogram.cast::<percid::Histogram>().write(made) };
            0
        }
        Err(why) => errno::of_source_error(why),
    })
}

/// Stores a snapshot of all recorded values in `snapshot`, to be freed by percid_snapshot_free().
///
/// The snapshot contains every record that happens before it, and may miss those that run at the
/// same time. Returns 0, or -EINVAL for NULL. Costs the reading of 3776 words for every ID ever
/// used.
///
/// # Safety
///
/// `histogram` is [an object](crate#safety). `snapshot` is [memory](crate#safety) for a pointer.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_snapshot(
    histogram: *const Histogram,
    snapshot: *mut *mut Snapshot,
) -> c_int {
    // SAFETY: the caller guarantees that the pointers are NULL or valid.
    unsafe { read(histogram, snapshot, percid::Histogram::snapshot) }
}

/// Stores a snapshot like percid_histogram_snapshot(), and removes its content from the histogram:
/// every record is in exactly one of the snapshots taken, or still in the histogram.
///
/// # Safety
///
/// `histogram` is [an object](crate#safety). `snapshot` is [memory](crate#safety) for a pointer.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_take(
    histogram: *mut Histogram,
    snapshot: *mut *mut Snapshot,
) -> c_int {
    // SAFETY: the caller guarantees that the pointers are NULL or valid.
    unsafe { read(histogram, snapshot, percid::Histogram::take) }
}

/// Returns the number of values that were not recorded because the first use found no memory; 0 for
/// NULL.
///
/// # Safety
///
/// `histogram` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_unrecorded(histogram: *const Histogram) -> u64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { self::histogram(histogram) }.map_or(0, percid::Histogram::unrecorded)
}

/// Frees the histogram's memory and makes it a new one. NULL is allowed. No other thread may use it
/// during the call. For copies see percid_counter_destroy().
///
/// # Safety
///
/// `histogram` is [an object](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_histogram_destroy(histogram: *mut Histogram) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid, and that no other thread
    // uses the object.
    guard((), || unsafe {
        destroyed::destroy(histogram.cast(), percid::capi::destroy_histogram);
    });
}

/// Stores a snapshot without values in `snapshot`, to merge others into. Returns 0, or -EINVAL for
/// NULL.
///
/// # Safety
///
/// `snapshot` is [memory](crate#safety) for a pointer.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_create(snapshot: *mut *mut Snapshot) -> c_int {
    if snapshot.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a valid pointer, and it is not NULL.
    unsafe { store(snapshot, Counts::new) }
}

/// Frees a snapshot. NULL is allowed.
///
/// # Safety
///
/// `snapshot` is [a result](crate#safety), which no thread uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_free(snapshot: *mut Snapshot) {
    if !snapshot.is_null() {
        // SAFETY: `store` created the snapshot, and the caller does not use it any more.
        guard((), || drop(unsafe { Box::from_raw(snapshot) }));
    }
}

/// Returns the number of recorded values; 0 for NULL.
///
/// # Safety
///
/// `snapshot` is [a result](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_count(snapshot: *const Snapshot) -> u64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { snapshot.as_ref() }.map_or(0, |snapshot| snapshot.0.count())
}

/// Stores in `value` a bound that a share `q` of the values does not exceed: 0.5 for the median, 0
/// for the smallest, 1 for the largest. Returns 0, -ENODATA if there are no values, -EINVAL for
/// NULL or a `q` that is not a number.
///
/// # Safety
///
/// `snapshot` is [a result](crate#safety). `value` is [memory](crate#safety) for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_quantile(
    snapshot: *const Snapshot,
    q: f64,
    value: *mut u64,
) -> c_int {
    if q.is_nan() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees that the pointers are NULL or valid.
    unsafe { figure(snapshot, value, |counts| counts.quantile(q)) }
}

/// Stores the smallest value, within 1/128. Returns the same values as percid_snapshot_quantile().
///
/// # Safety
///
/// `snapshot` is [a result](crate#safety). `value` is [memory](crate#safety) for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_min(snapshot: *const Snapshot, value: *mut u64) -> c_int {
    // SAFETY: the caller guarantees that the pointers are NULL or valid.
    unsafe { figure(snapshot, value, Counts::min) }
}

/// Stores the largest value, within 1/128. Returns the same values as percid_snapshot_quantile().
///
/// # Safety
///
/// `snapshot` is [a result](crate#safety). `value` is [memory](crate#safety) for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_max(snapshot: *const Snapshot, value: *mut u64) -> c_int {
    // SAFETY: the caller guarantees that the pointers are NULL or valid.
    unsafe { figure(snapshot, value, Counts::max) }
}

/// Stores the mean value, within 1/128. Returns the same values as percid_snapshot_quantile().
///
/// # Safety
///
/// `snapshot` is [a result](crate#safety). `mean` is [memory](crate#safety) for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_mean(snapshot: *const Snapshot, mean: *mut f64) -> c_int {
    // SAFETY: the caller guarantees that the pointers are NULL or valid.
    unsafe { figure(snapshot, mean, Counts::mean) }
}

/// Returns the number of buckets that have values, and writes the first `capacity` of them,
/// beginning with the smallest, to `buckets`. With `capacity` 0 nothing is written and `buckets`
/// may be NULL; 0 is returned if `snapshot` is NULL.
///
/// # Safety
///
/// `snapshot` is [a result](crate#safety). `buckets` is [memory](crate#safety) for `capacity` of
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_buckets(
    snapshot: *const Snapshot,
    buckets: *mut Bucket,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(snapshot) = (unsafe { snapshot.as_ref() }) else { return 0 };
    let of = |bucket| {
        let percid::histogram::Bucket { low, high, count, .. } = bucket;
        Bucket { low, high, count }
    };
    // SAFETY: the caller guarantees memory for `capacity` buckets, or NULL.
    guard(0, || unsafe { list::write(snapshot.0.buckets().map(of), buckets, capacity) })
}

/// Adds the values of `other`, for instance of another histogram, to `snapshot`. Returns 0, -EINVAL
/// for NULL, or -ENOMEM, which is possible only if both are the same.
///
/// # Safety
///
/// `snapshot` and `other` are [results](crate#safety), of which no other thread uses the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_snapshot_merge(
    snapshot: *mut Snapshot,
    other: *const Snapshot,
) -> c_int {
    if snapshot.is_null() || other.is_null() {
        return -libc::EINVAL;
    }
    guard(-libc::EFAULT, || {
        if snapshot.cast_const() == other {
            // SAFETY: the caller guarantees a valid pointer to a snapshot that no other thread
            // uses.
            let counts = unsafe { &mut (*snapshot).0 };
            if let Err(error) = errno::preserved(headroom::ask) {
                return error;
            }
            let same = counts.clone();
            counts.merge(&same);
        } else {
            // SAFETY: the caller guarantees valid pointers, and they refer to different snapshots.
            unsafe { (*snapshot).0.merge(&(*other).0) };
        }
        0
    })
}

/// # Safety
///
/// The pointers are NULL or valid.
unsafe fn read(
    histogram: *const Histogram,
    snapshot: *mut *mut Snapshot,
    counts: impl FnOnce(&percid::Histogram) -> Counts,
) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    match unsafe { copies::own(histogram.cast::<percid::Histogram>()) } {
        // SAFETY: the caller guarantees a valid pointer, and it is not NULL.
        Ok(histogram) if !snapshot.is_null() => unsafe { store(snapshot, || counts(histogram)) },
        Ok(_) => -libc::EINVAL,
        Err(error) => error,
    }
}

/// Stores a snapshot in the caller's memory, or NULL.
///
/// # Safety
///
/// `place` is valid for writing.
unsafe fn store(place: *mut *mut Snapshot, counts: impl FnOnce() -> Counts) -> c_int {
    let made = errno::preserved(|| {
        guard(None, || headroom::ask().ok().map(|()| Box::new(Snapshot(counts()))))
    });
    let result = if made.is_some() { 0 } else { -libc::ENOMEM };
    // SAFETY: the caller guarantees that `place` is valid for writing.
    unsafe { place.write(made.map_or(std::ptr::null_mut(), Box::into_raw)) };
    result
}

/// Stores a value of a snapshot in the caller's memory.
///
/// # Safety
///
/// The pointers are NULL or valid.
unsafe fn figure<F>(
    snapshot: *const Snapshot,
    place: *mut F,
    figure: impl FnOnce(&Counts) -> Option<F>,
) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(snapshot) = (unsafe { snapshot.as_ref() }).filter(|_| !place.is_null()) else {
        return -libc::EINVAL;
    };
    match guard(None, || figure(&snapshot.0)) {
        Some(found) => {
            // SAFETY: the caller guarantees that `place` is NULL or valid, and it is not NULL.
            unsafe { place.write(found) };
            0
        }
        None => -libc::ENODATA,
    }
}
