//! Reading the small text files of `/proc` and `/sys`.
//!
//! It uses raw system calls: the C library's wrappers are cancellation points, and a thread must
//! not be cancelled while it holds the table's lock. It reads small pieces: the stack of a signal
//! handler may have little room.

use std::ffi::CStr;
use std::fmt::{self, Write};
use std::ops::ControlFlow;

/// Passes the bytes of a file to `body`, one after the other, until it breaks; `None` if the file
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

/// Returns `true` if there is a file or a directory of this name.
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

/// A parser for the numbers in a text, in any notation. It does not use an `Option` of a number:
/// valgrind reports the compiled code for its unset half as an error.
#[derive(Debug, Default)]
struct Numbers {
    current: u32,
    has_digits: bool,
}

impl Numbers {
    /// Processes the next byte; returns a number if the byte ends one.
    fn push(&mut self, byte: u8) -> Option<u32> {
        if byte.is_ascii_digit() {
            let digit = u32::from(byte - b'0');
            self.current = self.current.saturating_mul(10).saturating_add(digit);
            self.has_digits = true;
            return None;
        }
        self.end()
    }

    /// Returns the number that the end of the text ends, if any.
    fn end(&mut self) -> Option<u32> {
        let number = std::mem::take(&mut self.current);
        std::mem::take(&mut self.has_digits).then_some(number)
    }
}

/// Returns the first number in a file: the smallest member of a CPU list.
pub(crate) fn first_number(path: &CStr) -> Option<u32> {
    let mut numbers = Numbers::default();
    let first = for_each_byte(path, |byte| match numbers.push(byte) {
        Some(number) => ControlFlow::Break(number),
        None => ControlFlow::Continue(()),
    })?;
    first.or(numbers.end())
}

/// Returns the last number in a file: the largest member of a CPU list.
pub(crate) fn last_number(path: &CStr) -> Option<u32> {
    let (mut numbers, mut last) = (Numbers::default(), None);
    for_each_byte(path, |byte| {
        last = numbers.push(byte).or(last);
        ControlFlow::<()>::Continue(())
    })?;
    numbers.end().or(last)
}

/// Returns the first line of a file for which `is_it` returns `true`, without its line end.
/// Allocates, so it is not async-signal-safe.
pub(crate) fn find_line(path: &CStr, is_it: impl Fn(&str) -> bool) -> Option<String> {
    let mut line = Vec::new();
    let found = for_each_byte(path, |byte| {
        if byte != b'\n' {
            line.push(byte);
            return ControlFlow::Continue(());
        }
        match String::from_utf8(std::mem::take(&mut line)) {
            Ok(line) if is_it(&line) => ControlFlow::Break(line),
            _ => ControlFlow::Continue(()),
        }
    })?;
    found.or_else(|| String::from_utf8(line).ok().filter(|last| is_it(last)))
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

    /// Returns the path as a C string.
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
    use crate::sys::described;

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
    fn the_first_and_the_last_number_of_a_file() {
        let ends = |text| {
            described::with(&[("/list", text)], || (first_number(c"/list"), last_number(c"/list")))
        };
        assert_eq!(ends("3-5,17\n"), (Some(3), Some(17)));
        assert_eq!(ends("3-5,17"), (Some(3), Some(17)), "without an end of line");
        assert_eq!(ends("12"), (Some(12), Some(12)));
        assert_eq!(ends("no\n"), (None, None));
        assert_eq!(ends(""), (None, None));
    }

    #[test]
    fn lines_are_found_by_what_they_say() {
        described::with(&[("/lines", "one: 1\ntwo: 2\n\ntwo: 3\nlast")], || {
            let find = |start: &str| find_line(c"/lines", |line| line.starts_with(start));
            assert_eq!(find("two").as_deref(), Some("two: 2"));
            assert_eq!(find("").as_deref(), Some("one: 1"));
            assert_eq!(find("last").as_deref(), Some("last"), "without an end of line");
            assert_eq!(find("three"), None);
            assert_eq!(find_line(c"/others", |_| true), None);
        });
    }

    /// The buffer has 64 bytes: the file has several times as many, and ends in the middle of a
    /// buffer.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no files")]
    fn a_file_is_read_to_its_end_and_closed() {
        let path = format!("/tmp/percid-file-{}", std::process::id());
        let text: Vec<u8> = (0..1000).map(|place| (place % 251) as u8).collect();
        std::fs::write(&path, &text).expect("a temporary file");
        let c_path = std::ffi::CString::new(path.clone()).expect("no zero");
        let read = || {
            let mut bytes = Vec::new();
            for_each_byte(&c_path, |byte| {
                bytes.push(byte);
                ControlFlow::<()>::Continue(())
            })
            .map(|_| bytes)
        };
        assert!(exists(&c_path));
        // More times than a process may open files.
        assert!((0..2000).all(|_| read().as_ref() == Some(&text)));
        let tenth = for_each_byte(&c_path, |byte| match byte {
            9 => ControlFlow::Break("found"),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(tenth, Some(Some("found")));
        std::fs::remove_file(&path).expect("it was there");
        assert!(!exists(&c_path) && read().is_none());
    }

    #[test]
    fn a_path_fits_or_is_refused() {
        let of = |length: usize| {
            let path = Path::format(format_args!("/{:0>1$}", "", length - 1))?;
            path.as_c_str().map(|path| path.to_bytes().len())
        };
        assert_eq!([1, 50, 95].map(of), [Some(1), Some(50), Some(95)]);
        assert_eq!([96, 97, 200].map(of), [None; 3]);
        let path = Path::format(format_args!("/cpu{}/node{}", 17, 3)).expect("room");
        assert_eq!(path.as_c_str(), Some(c"/cpu17/node3"));
    }

    #[test]
    fn a_missing_file_is_none() {
        assert_eq!(first_number(c"/proc/no such file"), None);
        assert_eq!(last_number(c"/proc/no such file"), None);
    }

    /// A file of this test, removed when the value is dropped.
    struct File(std::path::PathBuf);

    impl File {
        fn with(name: &str, text: &str) -> File {
            let path = std::env::temp_dir().join(format!("percid-{}-{name}", std::process::id()));
            std::fs::write(&path, text).expect("a file");
            File(path)
        }

        fn ends(&self) -> (Option<u32>, Option<u32>) {
            let path = std::ffi::CString::new(self.0.as_os_str().as_encoded_bytes());
            let path = path.expect("a name without zeros");
            (first_number(&path), last_number(&path))
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn numbers_across_the_pieces_that_are_read() {
        for before in 50..70 {
            let file = File::with("pieces", &format!("{}123456-98765", " ".repeat(before)));
            assert_eq!(file.ends(), (Some(123_456), Some(98_765)));
        }
        assert_eq!(File::with("one", "17").ends(), (Some(17), Some(17)));
        assert_eq!(File::with("none", "none\n").ends(), (None, None));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn descriptors_are_closed_and_not_inherited() {
        let fd = open(c"/proc/self/status").expect("/proc");
        // SAFETY: the call takes a descriptor.
        let flags = unsafe { libc::fcntl(fd as i32, libc::F_GETFD) };
        assert_eq!(flags, libc::FD_CLOEXEC);
        close(fd);
        let count = || std::fs::read_dir("/proc/self/fd").expect("/proc").count();
        let before = count();
        (0..200).for_each(|_| _ = first_number(c"/proc/self/status"));
        // Other tests open some files during this one.
        assert!(count() < before + 150);
    }

    #[test]
    fn a_path_has_95_bytes_at_most() {
        let path = |length: usize| Path::format(format_args!("{}", "x".repeat(length)));
        let longest = path(95).expect("it fits");
        assert_eq!(longest.as_c_str().expect("it is terminated").count_bytes(), 95);
        assert!(path(96).is_none());
        let parts = Path::format(format_args!("/sys/{}/{}", 17, "id")).expect("it fits");
        assert_eq!(parts.as_c_str(), Some(c"/sys/17/id"));
    }
}
