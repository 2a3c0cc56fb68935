//! The settings in environment variables.

use std::ffi::OsString;

/// Returns the value of `PERCID_SOURCE`, unless it is missing or empty. Uses the standard library,
/// which locks the environment and allocates.
pub(crate) fn source() -> Option<OsString> {
    std::env::var_os("PERCID_SOURCE").filter(|value| !value.is_empty())
}
