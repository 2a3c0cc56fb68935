//! Where nothing is recorded, nobody writes a spool.

use std::fs::File;
use std::io;

/// As if nobody had the lock.
pub(super) fn lock(_file: &File) -> io::Result<bool> {
    Ok(true)
}
