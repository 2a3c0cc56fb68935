//! Functions of C that the library calls. For those that do not return see [`ends`](crate::ends).

use std::ffi::{c_int, c_void};

/// A function that is called for each of several values, with the caller's argument.
pub(crate) type Visit = unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void);

/// A function that prepares a value in zeroed memory. It returns 0, or an error below 0.
pub(crate) type Make =
    unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void) -> c_int;

/// Maximum number of drains of an object that is destroyed: the functions that receive its content
/// may add more.
const DRAINS: usize = 100;

/// Drains an object until nothing is left. Returns 0; -EBUSY if there is always more, or the
/// drain's error.
pub(crate) fn drained(drain: impl FnMut() -> i64) -> c_int {
    let last = std::iter::repeat_with(drain).take(DRAINS).find(|drained| *drained <= 0);
    last.map_or(-libc::EBUSY, |last| last as c_int)
}

/// Converts a count to C's type, in which negative values are errors.
pub(crate) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
