//! Locks on folders, against another run of this program.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: File,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

impl Lock {
    /// Waits for the lock. Nothing is written, so that read permission suffices. If a file system
    /// has no locks for folders (NFS), nothing is locked.
    pub(crate) fn take(folder: &Path, mode: Mode) -> io::Result<Lock> {
        let folder = File::open(folder)?;
        let operation = match mode {
            Mode::Shared => libc::LOCK_SH,
            Mode::Exclusive => libc::LOCK_EX,
        };
        // SAFETY: the descriptor is open during the call, which accesses no memory.
        while unsafe { libc::flock(folder.as_raw_fd(), operation) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
        Ok(Lock { _folder: folder })
    }
}
