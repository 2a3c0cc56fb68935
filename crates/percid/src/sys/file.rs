//! Reading the small text files of `/proc` and `/sys`.

use std::ffi::CStr;
use std::fmt::{self, Write};

/// Reads up to `buffer.len()` bytes from the start of a file; `None` if it cannot be opened or read.
pub(crate) fn read<'b>(path: &CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    // SAFETY: `path` is a terminated string.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    let mut used = 0;
    while used < buffer.len() {
        let rest = &mut buffer[used..];
        // SAFETY: `rest` is writable for its whole length and `fd` is ours.
        let got = unsafe { libc::read(fd, rest.as_mut_ptr().cast(), rest.len()) };
        if got <= 0 {
            break;
        }
        used += got as usize;
    }
    // SAFETY: `fd` was opened above and is closed once.
    unsafe { libc::close(fd) };
    (used > 0).then_some(&buffer[..used])
}

/// Reads a file that holds one decimal number.
pub(crate) fn read_number(path: &CStr) -> Option<u32> {
    let mut buffer = [0; 32];
    let text = std::str::from_utf8(read(path, &mut buffer)?).ok()?;
    text.trim().parse().ok()
}

/// A terminated path built on the stack.
pub(crate) struct Path {
    bytes: [u8; 96],
    used: usize,
}

impl Path {
    /// Formats a path; `None` if it does not fit.
    pub(crate) fn format(text: fmt::Arguments<'_>) -> Option<Path> {
        let mut path = Path { bytes: [0; 96], used: 0 };
        path.write_fmt(text).ok()?;
        Some(path)
    }

    /// The path as a C string.
    pub(crate) fn as_c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_with_nul(&self.bytes[..=self.used]).ok()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        // The last byte stays zero: it ends the string.
        if end >= self.bytes.len() {
            return Err(fmt::Error);
        }
        self.bytes[self.used..end].copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}
