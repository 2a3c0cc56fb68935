//! Exposition pages: the content of a registry as text.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use percid_metrics::registry::{NoMemory, Parts};

use super::registry::Registry;
use super::texts;
use crate::barrier::guard;
use crate::callback::count;
use crate::ends::holding;
use crate::errno;
use crate::headroom;
use crate::registry::Registry as Handles;

/// A text format of pages. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own, version 0.0.4.
    Text = 1,
    /// OpenMetrics 1.0.
    OpenMetrics = 2,
}

impl Format {
    fn from_number(number: c_int) -> Option<percid_metrics::Format> {
        let all = [
            (Format::Text, percid_metrics::Format::Text),
            (Format::OpenMetrics, percid_metrics::Format::OpenMetrics),
        ];
        all.into_iter().find(|(format, _)| *format as c_int == number).map(|(_, found)| found)
    }
}

/// Writes the page into `text`: the values of all series of the registry, metrics by name and
/// series by the values of their labels. `format` is one of enum percid_format.
///
/// Writes at most `size` bytes, the last of them a zero, and returns the length of the whole page
/// without the zero, as snprintf() does; with `size` 0 nothing is written, and `text` may be NULL.
/// If the length is not less than `size`, the page did not fit, and `text` has the whole lines that
/// did. The next page may be longer than this one, so a program that requests the length first must
/// check again:
///
///     while ((length = percid_registry_render(registry, format, page, size)) >= (int64_t)size) {
///         size = (size_t)length + 4096;
///         page = realloc(page, size);
///     }
///
/// Each value contains every update that happened before the call, and may contain later ones.
/// Updates are not blocked. Costs about 400 ns for each line.
///
/// Returns -EINVAL for NULL or a number that is not a format's, -EBADF if the registry is
/// destroyed, -ENOMEM: then `text` is empty.
///
/// # Safety
///
/// `registry` is [a handle](crate#safety). `text` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_registry_render(
    registry: *const Registry,
    format: c_int,
    text: *mut c_char,
    size: usize,
) -> i64 {
    let room = if text.is_null() { 0 } else { size };
    let mut whole = Whole { text: text.cast(), room, length: 0 };
    let write = || {
        // SAFETY: the caller guarantees a handle.
        let mut parts = unsafe { parts(registry, format) }?;
        while let Some(part) = next(&mut parts)? {
            whole.take(part);
        }
        Ok(())
    };
    match errno::preserved(|| guard(Err(-libc::EFAULT), write)) {
        Ok(()) => whole.end(),
        Err(error) => {
            whole.length = 0;
            whole.end();
            error.into()
        }
    }
}

/// Passes the page to `write`, part by part: `length` bytes of whole lines, which it must not keep.
/// No lock is held while it runs, so it may send them to a slow reader.
///
/// If `write` returns a value other than 0, this function stops and returns that value. Otherwise
/// it returns 0, or an error of percid_registry_render(): then a part of the page may have been
/// passed already.
///
/// # Safety
///
/// `registry` is [a handle](crate#safety). `write` is [a callback](crate#safety) with `argument`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_registry_write(
    registry: *const Registry,
    format: c_int,
    write: Option<
        unsafe extern "C-unwind" fn(
            text: *const c_char,
            length: usize,
            argument: *mut c_void,
        ) -> c_int,
    >,
    argument: *mut c_void,
) -> c_int {
    let Some(write) = write else { return -libc::EINVAL };
    // SAFETY: the caller guarantees a handle.
    let begun = || unsafe { parts(registry, format) };
    let parts = match errno::preserved(|| guard(Err(-libc::EFAULT), begun)) {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    holding(parts, |parts| {
        loop {
            let part = errno::preserved(|| guard(Err(-libc::EFAULT), || next(parts)));
            let part = match part {
                Ok(Some(part)) => part,
                Ok(None) => return 0,
                Err(error) => return error,
            };
            // SAFETY: the caller guarantees a function for these arguments.
            let answer = unsafe { write(part.as_ptr().cast(), part.len(), argument) };
            if answer != 0 {
                return answer;
            }
        }
    })
}

/// # Safety
///
/// `registry` is a handle.
unsafe fn parts(registry: *const Registry, format: c_int) -> Result<Parts, c_int> {
    // SAFETY: the caller guarantees a handle.
    let registry = unsafe { Handles::object(registry) }?;
    let format = Format::from_number(format).ok_or(-libc::EINVAL)?;
    headroom::ask()?;
    registry.metrics().parts(format).map_err(|NoMemory| -libc::ENOMEM)
}

fn next(parts: &mut Parts) -> Result<Option<&[u8]>, c_int> {
    headroom::ask()?;
    parts.next().map_err(|NoMemory| -libc::ENOMEM)
}

/// The part of a page that fits into the caller's memory.
struct Whole {
    text: *mut u8,
    room: usize,
    length: usize,
}

impl Whole {
    fn take(&mut self, part: &[u8]) {
        let free = self.room.saturating_sub(1).saturating_sub(self.length);
        let copied = part.len().min(free);
        if copied > 0 {
            // SAFETY: the caller guarantees `room` bytes; `length` and `copied` together leave one
            // over.
            unsafe { self.text.add(self.length).copy_from_nonoverlapping(part.as_ptr(), copied) };
        }
        self.length += part.len();
    }

    /// Writes the zero, after the last whole line: a part of a line could be a different number.
    fn end(&self) -> i64 {
        if let Some(most) = self.room.checked_sub(1) {
            let mut end = self.length.min(most);
            // SAFETY: the index is below `room`, and the memory is written up to `end`.
            unsafe {
                if self.length > most {
                    let written = ptr::slice_from_raw_parts(self.text, end);
                    let last = (*written).iter().rposition(|&byte| byte == b'\n');
                    end = last.map_or(0, |last| last + 1);
                }
                *self.text.add(end) = 0;
            }
        }
        count(self.length)
    }
}

/// Returns the value of the header Content-Type for a format; NULL if no format has this number.
///
/// Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn percid_format_content_type(format: c_int) -> *const c_char {
    const TEXT: &CStr = c"text/plain; version=0.0.4; charset=utf-8";
    const OPEN_METRICS: &CStr = c"application/openmetrics-text; version=1.0.0; charset=utf-8";
    match Format::from_number(format) {
        Some(percid_metrics::Format::Text) => TEXT.as_ptr(),
        Some(percid_metrics::Format::OpenMetrics) => OPEN_METRICS.as_ptr(),
        None => ptr::null(),
    }
}

/// Returns the format that a client requests by the value of its header Accept: one of enum
/// percid_format. PERCID_FORMAT_TEXT for NULL and for clients that do not request OpenMetrics.
///
/// # Safety
///
/// `accept` is NULL or a text that ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_format_accepted(accept: *const c_char) -> c_int {
    // SAFETY: the caller guarantees NULL or a NUL-terminated text.
    let accept = unsafe { texts::text(accept) }.ok().flatten().unwrap_or_default();
    let asked = guard(percid_metrics::Format::Text, || percid_metrics::Format::accepted(accept));
    match asked {
        percid_metrics::Format::Text => Format::Text as c_int,
        percid_metrics::Format::OpenMetrics => Format::OpenMetrics as c_int,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_names_that_rust_gives_them() {
        for (format, number) in
            [(percid_metrics::Format::Text, 1), (percid_metrics::Format::OpenMetrics, 2)]
        {
            assert_eq!(Format::from_number(number), Some(format));
            // SAFETY: the pointer refers to a NUL-terminated text.
            let name = unsafe { CStr::from_ptr(percid_format_content_type(number)) };
            assert_eq!(name.to_str(), Ok(format.content_type()));
        }
        assert!([-1, 0, 3].into_iter().all(|it| percid_format_content_type(it).is_null()));
    }

    #[test]
    fn a_page_is_cut_off_behind_a_whole_line() {
        const PAGE: &[u8] = b"a 1\nbb 22\nc 333\n";
        for size in 0..PAGE.len() + 3 {
            let mut memory = [0x55_u8; 32];
            let mut whole = Whole { text: memory.as_mut_ptr(), room: size, length: 0 };
            PAGE.chunks(5).for_each(|part| whole.take(part));
            assert_eq!(whole.end(), PAGE.len() as i64);
            assert!(memory[size..].iter().all(|&byte| byte == 0x55), "{size}");
            if size > 0 {
                let text = CStr::from_bytes_until_nul(&memory[..size]).expect("a zero").to_bytes();
                let fits: &[u8] = match size {
                    ..5 => b"",
                    5..11 => b"a 1\n",
                    11..17 => b"a 1\nbb 22\n",
                    _ => PAGE,
                };
                assert_eq!(text, fits, "{size}");
            }
        }
    }
}
