//! Short messages on standard error.

use std::fmt;
use std::io::{self, Write};

/// Writes `percid: message` as one line, best effort: an error is ignored, because a library cannot
/// report that standard error is closed.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let _ = io::stderr().write_all(format!("percid: {message}\n").as_bytes());
}
