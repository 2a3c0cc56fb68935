//! Functions of C that the library calls. What if they do not return: see [`ends`](crate::ends).

use std::ffi::{c_int, c_void};

/// What is called for each of several values, with what the caller passes through.
pub(crate) type Visit = unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void);

/// Prepares a value in memory that is zeroed: 0, or an error, below 0.
pub(crate) type Make =
    unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void) -> c_int;

/// How many times over an object that is to be destroyed is drained: the functions that get its
/// content may put more in.
const DRAINS: usize = 100;

/// Drains an object until nothing is left: 0; -EBUSY if there is always more, or the drain's error.
pub(crate) fn drained(drain: impl FnMut() -> i64) -> c_int {
    let last = std::iter::repeat_with(drain).take(DRAINS).find(|drained| *drained <= 0);
    last.map_or(-libc::EBUSY, |last| last as c_int)
}

/// A number that C gets for a count, unless the answer is an error.
pub(crate) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
