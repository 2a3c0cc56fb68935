//! Files in memory without a name: other processes reach them through `/proc` only. Allocates: not
//! async-signal-safe.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

use super::memory;

/// The flag that forbids execution, of Linux 6.3 (`linux/memfd.h`). A system may require it.
const MFD_NOEXEC_SEAL: libc::c_uint = 8;

/// Makes a file that is closed at `exec`.
///
/// # Errors
///
/// Returns an error if the kernel does not support it, or has no memory or descriptor for it.
pub(crate) fn create(name: &CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    match open(name, flags | MFD_NOEXEC_SEAL) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(name, flags),
        done => done,
    }
}

fn open(name: &CStr, flags: libc::c_uint) -> io::Result<File> {
    // SAFETY: the name is a terminated string.
    let file = unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the descriptor is open and owned here.
    Ok(unsafe { File::from_raw_fd(file as i32) })
}

/// Seals the file against shrinking, so that its present size can be mapped safely, and against
/// further seals.
///
/// # Errors
///
/// Returns an error if the kernel refuses.
pub(crate) fn never_shrink(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: the call takes the descriptor and a number.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Maps the file's first bytes, shared with all other mappings of it. [`memory::unmap`] unmaps
/// them.
///
/// # Errors
///
/// Returns an error if there is no memory, or the kernel refuses.
pub(crate) fn map(file: &File, bytes: usize) -> io::Result<NonNull<u8>> {
    memory::map_with(bytes, libc::MAP_SHARED, file.as_raw_fd()).ok_or_else(io::Error::last_os_error)
}
