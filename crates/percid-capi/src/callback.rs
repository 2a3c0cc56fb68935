//! Functions of C that the library calls. What if they do not return: see [`ends`](crate::ends).

use std::ffi::{c_int, c_void};

/// What is called for each of several values, with what the caller passes through.
pub(crate) type Visit = unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void);

/// Prepares a value in memory that is zeroed: 0, or an error, below 0.
pub(crate) type Make =
    unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void) -> c_int;

/// A number that C gets for a count, unless the answer is an error.
pub(crate) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
