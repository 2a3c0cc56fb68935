//! Texts that C gives: one, or a list of them.

use std::ffi::{CStr, c_char, c_int};

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

/// A text, unless it is NULL.
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

/// The texts of a list.
///
/// # Errors
///
/// `-EINVAL` for NULL, `-EILSEQ` for what is not UTF-8.
///
/// # Safety
///
/// As [`list`].
pub(super) unsafe fn texts<'a>(
    list: *const *const c_char,
    count: usize,
) -> Result<Vec<&'a str>, c_int> {
    // SAFETY: by contract.
    let list = unsafe { self::list(list, count) }?;
    // SAFETY: as above; none is NULL.
    let found = list.iter().map(|&it| unsafe { text(it) }.map(Option::unwrap_or_default));
    found.collect()
}
