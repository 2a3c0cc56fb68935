//! Text for C: in the caller's memory, NUL-terminated, and truncated if there is not enough room.

use std::ffi::c_char;
use std::fmt::{self, Display, Write};

/// Writes `what` into `text`, followed by a zero, and returns the length of the whole text without
/// the zero, as `snprintf` does. Allocates nothing.
///
/// # Safety
///
/// `text` is NULL or the caller's memory of `size` bytes.
pub(crate) unsafe fn write(text: *mut c_char, size: usize, what: impl Display) -> usize {
    let mut line = Line { text, room: if text.is_null() { 0 } else { size }, length: 0 };
    // Writing to `Line` never fails.
    let _ = write!(line, "{what}");
    line.end();
    line.length
}

/// Does the same as [`write`], for a member of a structure.
pub(crate) fn array<const N: usize>(what: impl Display) -> [c_char; N] {
    let mut array = [0; N];
    // SAFETY: the array has `N` bytes.
    unsafe { write(array.as_mut_ptr(), N, what) };
    array
}

/// A line of text in the caller's memory, truncated at its end.
struct Line {
    text: *mut c_char,
    room: usize,
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let free = self.room.saturating_sub(1).saturating_sub(self.length);
        let copied = part.len().min(free);
        if copied > 0 {
            // SAFETY: the caller of `write` guarantees `room` bytes, of which `length` and `copied`
            // together leave one over.
            unsafe {
                let end = self.text.add(self.length).cast::<u8>();
                end.copy_from_nonoverlapping(part.as_ptr(), copied);
            }
        }
        self.length += part.len();
        Ok(())
    }
}

impl Line {
    /// Writes the zero.
    fn end(&mut self) {
        if let Some(last) = self.room.checked_sub(1) {
            // SAFETY: the index is below `room`.
            unsafe { *self.text.add(last.min(self.length)) = 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn a_text_is_cut_off_where_the_memory_ends() {
        const WHOLE: &str = "a line of two parts";
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { write(std::ptr::null_mut(), 0, WHOLE) }, WHOLE.len());
        // SAFETY: NULL is allowed, with any size.
        assert_eq!(unsafe { write(std::ptr::null_mut(), 9, WHOLE) }, WHOLE.len());
        for size in 1..=WHOLE.len() + 3 {
            let mut memory = [0x55_u8; 32];
            let parts = format_args!("a line {}", "of two parts");
            // SAFETY: `memory` is larger than `size`.
            assert_eq!(unsafe { write(memory.as_mut_ptr().cast(), size, parts) }, WHOLE.len());
            assert!(memory[size..].iter().all(|&byte| byte == 0x55));
            let text = CStr::from_bytes_until_nul(&memory[..size]).expect("a zero within the size");
            assert_eq!(text.to_bytes(), &WHOLE.as_bytes()[..WHOLE.len().min(size - 1)], "{size}");
        }
    }

    #[test]
    fn a_member_that_is_too_short_ends_in_a_zero() {
        assert_eq!(array::<4>("abcdef"), [b'a', b'b', b'c', 0].map(|byte| byte as c_char));
        assert_eq!(array::<4>("a"), [b'a', 0, 0, 0].map(|byte| byte as c_char));
    }
}
