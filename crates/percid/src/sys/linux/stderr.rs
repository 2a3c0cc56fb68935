//! Short messages on standard error without allocation or locks.

use std::fmt::{self, Write};

/// A line for standard error, truncated at the size of its buffer.
struct Line {
    bytes: [u8; 256],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte stays free for the line end.
        let room = self.bytes.len() - 1 - self.used;
        let taken = text.len().min(room);
        self.bytes[self.used..self.used + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.used += taken;
        Ok(())
    }
}

/// Writes `percid: message` as one line, best effort: an error is ignored, because a library cannot
/// report that standard error is closed.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 256], used: 0 };
    let _ = write!(line, "percid: {message}");
    line.bytes[line.used] = b'\n';
    // SAFETY: the buffer holds `used + 1` initialised bytes.
    // The raw call, because the C library's wrapper is a cancellation point.
    unsafe {
        libc::syscall(libc::SYS_write, libc::STDERR_FILENO, line.bytes.as_ptr(), line.used + 1)
    };
}

/// Returns what a child of this process writes to standard error in `body`, which must not allocate.
#[cfg(all(test, not(miri)))]
pub(crate) fn said_by(body: impl FnOnce()) -> String {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    let (mut said, end) = std::io::pipe().expect("a pipe");
    // SAFETY: the child only makes system calls, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the descriptor is open; the call ends the child.
        unsafe {
            libc::dup2(end.as_raw_fd(), libc::STDERR_FILENO);
            body();
            libc::_exit(0);
        }
    }
    drop(end);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("text");
    // SAFETY: the call takes a number, and no place for the status.
    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(miri))]
    fn a_message_is_one_line_that_names_the_library() {
        assert_eq!(said_by(|| say(format_args!("{} {}", 1, "two"))), "percid: 1 two\n");
        let long = "x".repeat(300);
        assert_eq!(said_by(|| say(format_args!("{long}"))), format!("percid: {}\n", &long[..247]));
    }

    fn line() -> Line {
        Line { bytes: [0; 256], used: 0 }
    }

    #[test]
    fn a_long_line_is_cut_off_before_its_end() {
        let mut line = line();
        for part in ["percid: ", &"x".repeat(247), "y", &"z".repeat(300)] {
            line.write_str(part).expect("never refused");
        }
        assert_eq!((line.used, &line.bytes[..8], line.bytes[254]), (255, &b"percid: "[..], b'x'));
        assert_eq!(line.bytes[255], 0, "the line end goes there");
    }
}
