//! Reads of small files of `/proc` and `/sys` without allocation, as the monitor needs them.

use std::ffi::CStr;
use std::fmt;
use std::io::Write;

/// Maximum length of a path, with the terminating zero.
const MAX_PATH_BYTES: usize = 96;

/// Reads the start of a file, by one call; `None` if it cannot be opened or read.
pub(super) fn read_start<'b>(path: fmt::Arguments<'_>, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a terminated string.
    let file = with_path(path, |path| unsafe { libc::open(path.as_ptr(), flags) })?;
    if file < 0 {
        return None;
    }
    // SAFETY: the buffer is writable for its whole length and the file is open.
    let got = unsafe { libc::read(file, buffer.as_mut_ptr().cast(), buffer.len()) };
    // SAFETY: nothing else owns the descriptor.
    unsafe { libc::close(file) };
    buffer.get(..usize::try_from(got).ok()?)
}

/// Returns `true` if the file exists.
pub(super) fn exists(path: fmt::Arguments<'_>) -> bool {
    // SAFETY: the path is a terminated string.
    with_path(path, |path| unsafe { libc::access(path.as_ptr(), libc::F_OK) }) == Some(0)
}

/// Passes a path as a C string to `body`; returns `None` if it is too long.
fn with_path<T>(path: fmt::Arguments<'_>, body: impl FnOnce(&CStr) -> T) -> Option<T> {
    let mut bytes = [0; MAX_PATH_BYTES];
    // The last byte stays zero: it terminates the string.
    (&mut bytes[..MAX_PATH_BYTES - 1]).write_fmt(path).ok()?;
    CStr::from_bytes_until_nul(&bytes).ok().map(body)
}
