//! The lock on a spool of the process that writes it. It ends with the process, however that ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Takes the lock for as long as the file is open. False if another process has it.
///
/// # Errors
///
/// The system cannot lock this file.
pub(super) fn lock(file: &File) -> io::Result<bool> {
    // SAFETY: the call takes a descriptor that is open, and no pointers.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}
