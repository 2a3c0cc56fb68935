//! Texts from C: one, or a list of them.

use std::ffi::{CStr, c_char, c_int};
use std::fmt::Display;

use super::error::Refusal;

/// Returns the pointers of a list. `-EINVAL` if the list or one of its pointers is NULL.
///
/// # Errors
///
/// Returns `-EINVAL` if the list or one of its pointers is NULL.
///
/// # Safety
///
/// `list` is [texts](crate#safety), `count` of them, which outlive `'a`.
#[inline(always)]
pub(super) unsafe fn list<'a>(
    list: *const *const c_char,
    count: usize,
) -> Result<&'a [*const c_char], c_int> {
    if count == 0 {
        return Ok(&[]);
    }
    if list.is_null() || !list.is_aligned() || count > isize::MAX as usize / size_of::<*const ()>()
    {
        return Err(-libc::EINVAL);
    }
    // SAFETY: the caller guarantees memory for `count` pointers, and NULL was excluded.
    let list = unsafe { std::slice::from_raw_parts(list, count) };
    if list.iter().any(|text| text.is_null()) { Err(-libc::EINVAL) } else { Ok(list) }
}

/// Returns the bytes of a text.
///
/// # Safety
///
/// `text` is NUL-terminated, and outlives `'a`.
#[inline(always)]
pub(super) unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: the caller guarantees a NUL-terminated text that outlives `'a`.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// Returns a text, unless it is NULL. Allocates nothing.
///
/// # Errors
///
/// `-EILSEQ` if it is not UTF-8.
///
/// # Safety
///
/// `text` is NULL, or NUL-terminated, and outlives `'a`.
pub(super) unsafe fn text<'a>(text: *const c_char) -> Result<Option<&'a str>, c_int> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller guarantees a NUL-terminated text, and it is not NULL.
    std::str::from_utf8(unsafe { bytes(text) }).map(Some).map_err(|_| -libc::EILSEQ)
}

/// Returns a text like [`text`]; `name` is the member that contains it.
///
/// # Errors
///
/// A refusal that names the member, if the text is not UTF-8.
///
/// # Safety
///
/// The contract of [`text`] holds.
pub(super) unsafe fn member<'a>(
    name: impl Display,
    text: *const c_char,
) -> Result<Option<&'a str>, Refusal> {
    // SAFETY: the caller guarantees NULL or a NUL-terminated text that outlives `'a`.
    unsafe { self::text(text) }.map_err(|error| Refusal::new(error, format!("{name} is not UTF-8")))
}

/// Returns the texts of a list; `name` is the member that contains it.
///
/// # Errors
///
/// Returns `-EINVAL` for NULL, `-EILSEQ` for a text that is not UTF-8.
///
/// # Safety
///
/// The contract of [`list`] holds.
pub(super) unsafe fn texts<'a>(
    name: &str,
    list: *const *const c_char,
    count: usize,
) -> Result<Vec<&'a str>, Refusal> {
    // SAFETY: the caller guarantees texts, `count` of them, that outlive `'a`.
    let list = unsafe { self::list(list, count) }.map_err(|error| {
        let why = format!(
            "{name} is not a list of {count} texts: it is NULL or unaligned, or one of them is NULL"
        );
        Refusal::new(error, why)
    })?;
    let each = list.iter().enumerate().map(|(index, &text)| {
        // SAFETY: the caller guarantees NUL-terminated texts, and none is NULL.
        let text = unsafe { member(format_args!("{name}[{index}]"), text) };
        text.map(Option::unwrap_or_default)
    });
    each.collect()
}
