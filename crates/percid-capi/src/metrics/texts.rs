//! Texts that C gives: one, or a list of them.

use std::ffi::{CStr, c_char, c_int};
use std::fmt::Display;

use super::error::Refusal;

/// The pointers of a list. `-EINVAL` for NULL, in the place of the list or in it.
///
/// # Errors
///
/// See above.
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
    // SAFETY: by contract.
    let list = unsafe { std::slice::from_raw_parts(list, count) };
    if list.iter().any(|text| text.is_null()) { Err(-libc::EINVAL) } else { Ok(list) }
}

/// The bytes of a text.
///
/// # Safety
///
/// It is one that ends in a zero, and that outlives `'a`.
#[inline(always)]
pub(super) unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: by contract.
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
/// It is NULL, or one that ends in a zero and outlives `'a`.
pub(super) unsafe fn text<'a>(text: *const c_char) -> Result<Option<&'a str>, c_int> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: by contract.
    std::str::from_utf8(unsafe { bytes(text) }).map(Some).map_err(|_| -libc::EILSEQ)
}

/// Returns a text, as [`text`]; `name` is the member that has it.
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
    // SAFETY: by contract.
    unsafe { self::text(text) }.map_err(|error| Refusal::new(error, format!("{name} is not UTF-8")))
}

/// Returns the texts of a list; `name` is the member that has it.
///
/// # Errors
///
/// `-EINVAL` for NULL, `-EILSEQ` for what is not UTF-8.
///
/// # Safety
///
/// As [`list`].
pub(super) unsafe fn texts<'a>(
    name: &str,
    list: *const *const c_char,
    count: usize,
) -> Result<Vec<&'a str>, Refusal> {
    // SAFETY: by contract.
    let list = unsafe { self::list(list, count) }.map_err(|error| {
        let why = format!(
            "{name} is not a list of {count} texts: it is NULL or unaligned, or one of them is NULL"
        );
        Refusal::new(error, why)
    })?;
    let each = list.iter().enumerate().map(|(index, &text)| {
        // SAFETY: as above; none is NULL.
        let text = unsafe { member(format_args!("{name}[{index}]"), text) };
        text.map(Option::unwrap_or_default)
    });
    each.collect()
}
