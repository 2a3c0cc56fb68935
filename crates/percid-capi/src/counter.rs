//! Counters. The increment itself is in `include/percid_inline.h`, in the caller's code.

use std::ffi::c_int;

use crate::barrier::guard;
use crate::copies;
use crate::destroyed;
use crate::errno;
use crate::list;
use crate::source::source;

/// A signed 64-bit counter that every CPU updates in its own memory.
///
/// It is valid when all its bytes are zero: initialise it with PERCID_COUNTER_INIT, statically or
/// otherwise, or with calloc(). It may be moved (but not copied) while no thread uses it.
///
/// Threads: any number of threads may use it at once. An increment is never lost and never counted
/// twice.
/// Signals: everything but percid_counter_destroy() is async-signal-safe and leaves errno alone.
/// Fork: the child's counter starts with the parent's value, on its own memory.
/// Overflow: values wrap around at 64 bits (at 60 bits for a counter that found no memory for IDs).
/// Memory: these 8 bytes, and 8 bytes for every ID that used it, page by page.
#[repr(C)]
#[derive(Debug)]
pub struct Counter {
    /// Private to the library.
    word: u64,
}

const _: () = {
    assert!(size_of::<Counter>() == size_of::<percid::Counter>());
    assert!(align_of::<Counter>() == align_of::<percid::Counter>());
    // SAFETY: both types have eight bytes, and every value of them is a valid `u64`.
    let word: u64 = unsafe { std::mem::transmute(percid::Counter::new()) };
    assert!(word == 0, "PERCID_COUNTER_INIT is a new counter");
};

/// Returns a reference to the library's counter, while the caller's pointer is valid; `None` for
/// NULL and for another copy's counter.
///
/// # Safety
///
/// `counter` is NULL or points to a counter that outlives `'a`.
unsafe fn counter<'a>(counter: *const Counter) -> Option<&'a percid::Counter> {
    // SAFETY: size and alignment are those of the library's type, all of whose changes are atomic;
    // every value that a C program may store is a counter.
    unsafe { copies::own(counter.cast::<percid::Counter>()) }.ok()
}

/// Adds `n`, which may be negative.
///
/// C and C++ programs have this as an inline function, see percid_inline.h; the function is for
/// programs that cannot include that file.
///
/// # Safety
///
/// `counter` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_add(counter: *mut Counter, n: i64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { percid_counter_add_slow(counter, n) }
}

/// Handles all cases except the common one of percid_counter_add(): the first use, a CPU without an
/// ID, an aborted critical section, PERCID_SOURCE_ATOMIC. In the common case it does the same as
/// the inline function, by a call, and takes 1 ns more.
///
/// # Safety
///
/// `counter` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_add_slow(counter: *mut Counter, n: i64) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    if let Some(counter) = unsafe { self::counter(counter) } {
        guard((), || counter.add(n));
    }
}

/// Initialises `counter`, whose old content is ignored, as a counter of value 0 that uses this
/// source, independently of the process's source: for measurements and tests.
///
/// Returns 0; -EINVAL if `counter` is NULL or no source has this number; -ENOSYS, -ENOTSUP, -EPERM
/// or another negative errno if the machine or a sandbox does not allow the source; -ENOMEM. On
/// error `counter` is unchanged.
///
/// # Safety
///
/// `counter` is [memory](crate#safety) for a counter.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_with_source(counter: *mut Counter, source: c_int) -> c_int {
    let Some(source) = self::source(source).filter(|_| !counter.is_null()) else {
        return -libc::EINVAL;
    };
    guard(-libc::EFAULT, || match percid::Counter::with_source(source) {
        Ok(made) => {
            // SAFETY: the caller guarantees memory for a counter, and it is not NULL.
            unsafe { counter.cast::<percid::Counter>().write(made) };
            0
        }
        Err(why) => errno::of_source_error(why),
    })
}

/// Returns the sum over all IDs; 0 for NULL.
///
/// The sum contains every increment that happens before it, so it is exact after joining threads;
/// it may miss increments that run at the same time. Costs the reading of one word for every ID
/// ever used.
///
/// # Safety
///
/// `counter` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_sum(counter: *const Counter) -> i64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let counter = unsafe { self::counter(counter) };
    guard(0, || counter.map_or(0, percid::Counter::sum))
}

/// Returns the sum over all IDs, and resets it to zero; 0 for NULL.
///
/// An increment that runs at the same time is contained either in the result or in the remaining
/// value: the results of all calls and the last sum add up to the total of all increments. Costs
/// the same as a sum.
///
/// # Safety
///
/// `counter` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_take(counter: *mut Counter) -> i64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let counter = unsafe { self::counter(counter) };
    guard(0, || counter.map_or(0, percid::Counter::take))
}

/// Returns the number of IDs, and writes the amounts that the first `capacity` IDs have added to
/// `values`. The rest of the sum is percid_counter_shared(). With `capacity` 0 nothing is written
/// and `values` may be NULL; 0 is returned if `counter` is NULL.
///
/// Costs the same as a sum.
///
/// # Safety
///
/// `counter` is [an object](crate#safety). `values` is [memory](crate#safety) for `capacity` of
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_per_id(
    counter: *const Counter,
    values: *mut i64,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(counter) = (unsafe { self::counter(counter) }) else { return 0 };
    // SAFETY: the caller guarantees memory for `capacity` values, or NULL.
    guard(0, || unsafe { list::write(counter.per_id(), values, capacity) })
}

/// Returns the amount that was added without an ID, minus the amount that percid_counter_take() has
/// taken from it; 0 for NULL.
///
/// # Safety
///
/// `counter` is [an object](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_shared(counter: *const Counter) -> i64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let counter = unsafe { self::counter(counter) };
    guard(0, || counter.map_or(0, percid::Counter::shared))
}

/// Frees the counter's memory and makes it a new counter of value 0. NULL is allowed.
///
/// No other thread may use the counter during the call: an increment in flight would go to a thread
/// that gets the memory next. Counters that live as long as the process need not be destroyed.
/// Costs the reading of one word for every ID ever used. Not for signal handlers.
///
/// If the counter was copied, which is not allowed, and a copy was destroyed before, nothing is
/// freed a second time. The copy becomes a new counter, and one line on standard error reports it,
/// once in the process. This is detected only while no other object has the memory. It is not
/// detected if a copy is used after the other was destroyed, or is destroyed when another object
/// has the memory already, which then loses it.
///
/// # Safety
///
/// `counter` is [an object](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_counter_destroy(counter: *mut Counter) {
    // SAFETY: the caller guarantees that the pointer is NULL or valid, and that no other thread
    // uses the object.
    guard((), || unsafe {
        destroyed::destroy(counter.cast(), percid::capi::destroy_counter);
    });
}
