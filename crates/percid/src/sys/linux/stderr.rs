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

#[cfg(test)]
mod tests {
    use super::*;

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
