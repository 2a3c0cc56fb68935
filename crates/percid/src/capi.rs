//! What the C interface needs of this crate beyond its public face.

use std::fmt;

use crate::sys::{preserving_errno, stderr};

/// Writes `percid: message` as one line to standard error. Async-signal-safe as far as formatting
/// the message is.
pub fn say(message: fmt::Arguments<'_>) {
    preserving_errno(|| stderr::say(message));
}
