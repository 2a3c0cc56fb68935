//! The settings in environment variables.

use std::ffi::CStr;

use super::process;

/// Returns the value of `PERCID_SOURCE`, unless it is missing or empty, or the program has
/// privileges that its caller does not have (set-user-ID, file capabilities). In that case the
/// environment is not trusted. It is read without the standard library's lock on the environment,
/// which the interrupted code might hold.
pub(crate) fn source() -> Option<&'static CStr> {
    if process::auxiliary(libc::AT_SECURE) != 0 {
        return None;
    }
    // SAFETY: the name is a terminated string.
    let value = unsafe { libc::getenv(c"PERCID_SOURCE".as_ptr()) };
    // SAFETY: the C library returns null or a terminated string of the environment.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }).filter(|value| !value.is_empty())
}
