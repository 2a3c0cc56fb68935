//! What the environment asks for.

use std::ffi::OsString;

/// The value of `PERCID_SOURCE`, unless it is missing or empty. Through the standard library, which
/// locks the environment and allocates.
pub(crate) fn source() -> Option<OsString> {
    std::env::var_os("PERCID_SOURCE").filter(|value| !value.is_empty())
}
