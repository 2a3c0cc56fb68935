//! Stub for systems on which nothing is recorded: no process writes a spool.

use std::fs::File;
use std::io;

/// Returns `true`, as for a file that nobody has locked.
pub(super) fn lock(_file: &File) -> io::Result<bool> {
    Ok(true)
}
