//! Reading the small text files of `/proc` and `/sys`.
//!
//! By raw system calls: the C library's wrappers are cancellation points, and a thread must not be
//! cancelled while it holds the lock of the table. And by small steps: the stack of a signal
//! handler may have little room.

use std::ffi::CStr;
use std::fmt::{self, Write};
use std::ops::ControlFlow;

/// Hands the bytes of a file to `body`, one after the other, until it breaks; `None` if the file
/// cannot be opened.
pub(crate) fn for_each_byte<B>(
    path: &CStr,
    mut body: impl FnMut(u8) -> ControlFlow<B>,
) -> Option<Option<B>> {
    #[cfg(any(test, miri))]
    if let Some(text) = super::described::file(path) {
        return text.map(|text| text.bytes().find_map(|byte| body(byte).break_value()));
    }
    let fd = open(path)?;
    let result = read_all(fd, &mut body);
    close(fd);
    Some(result)
}

/// Whether there is a file or a directory of this name.
pub(crate) fn exists(path: &CStr) -> bool {
    #[cfg(any(test, miri))]
    if let Some(text) = super::described::file(path) {
        return text.is_some();
    }
    // SAFETY: the path is a terminated string.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 }
}

fn open(path: &CStr) -> Option<libc::c_long> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: `path` is a terminated string.
    let fd = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    (fd >= 0).then_some(fd)
}

fn close(fd: libc::c_long) {
    // SAFETY: no thread uses the descriptor any more.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

fn read_all<B>(fd: libc::c_long, body: &mut impl FnMut(u8) -> ControlFlow<B>) -> Option<B> {
    let mut buffer = [0u8; 64];
    loop {
        // SAFETY: the buffer is writable for its whole length and `fd` is open.
        let got = unsafe { libc::syscall(libc::SYS_read, fd, buffer.as_mut_ptr(), buffer.len()) };
        let bytes = usize::try_from(got).ok().filter(|&got| got > 0)?;
        for &byte in &buffer[..bytes] {
            if let ControlFlow::Break(value) = body(byte) {
                return Some(value);
            }
        }
    }
}

/// The numbers in a text, in whatever notation they stand there. No `Option` of a number: what
/// compilers make of its unset half looks like an error to valgrind.
#[derive(Debug, Default)]
struct Numbers {
    current: u32,
    has_digits: bool,
}

impl Numbers {
    /// Takes the next byte; a number when the byte ends one.
    fn push(&mut self, byte: u8) -> Option<u32> {
        if byte.is_ascii_digit() {
            let digit = u32::from(byte - b'0');
            self.current = self.current.saturating_mul(10).saturating_add(digit);
            self.has_digits = true;
            return None;
        }
        self.end()
    }

    /// The number that the end of the text ends, if any.
    fn end(&mut self) -> Option<u32> {
        let number = std::mem::take(&mut self.current);
        std::mem::take(&mut self.has_digits).then_some(number)
    }
}

/// The first number in a file: of a CPU list, its smallest member.
pub(crate) fn first_number(path: &CStr) -> Option<u32> {
    let mut numbers = Numbers::default();
    let first = for_each_byte(path, |byte| match numbers.push(byte) {
        Some(number) => ControlFlow::Break(number),
        None => ControlFlow::Continue(()),
    })?;
    first.or(numbers.end())
}

/// The last number in a file: of a CPU list, its largest member.
pub(crate) fn last_number(path: &CStr) -> Option<u32> {
    let (mut numbers, mut last) = (Numbers::default(), None);
    for_each_byte(path, |byte| {
        last = numbers.push(byte).or(last);
        ControlFlow::<()>::Continue(())
    })?;
    numbers.end().or(last)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<u32> {
        let mut numbers = Numbers::default();
        let mut found: Vec<u32> = text.bytes().filter_map(|byte| numbers.push(byte)).collect();
        found.extend(numbers.end());
        found
    }

    #[test]
    fn numbers_in_any_notation() {
        assert_eq!(all("0-3,8\n"), [0, 3, 8]);
        assert_eq!(all("17"), [17]);
        assert_eq!(all("-,\n"), [0u32; 0]);
        assert_eq!(all("99999999999999999999 1"), [u32::MAX, 1]);
    }

    #[test]
    fn a_missing_file_is_none() {
        assert_eq!(first_number(c"/proc/no such file"), None);
        assert_eq!(last_number(c"/proc/no such file"), None);
    }
}
