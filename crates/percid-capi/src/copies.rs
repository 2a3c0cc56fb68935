//! Several copies of percid in one process.
//!
//! An object belongs to the copy whose function was the first to use it. Another copy has other
//! memory, other IDs and perhaps another layout, so it cannot use the object correctly. Functions
//! of the library detect that and refuse; inline code does not check it.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Returns an identifier of this copy: an address that no other copy can have. (The table's address
/// would have to be looked up, and the first look-up binds all modules to its result.)
pub(crate) fn this() -> u64 {
    percid::capi::FAST_PATH_WORDS.addr() as u64
}

/// Returns a reference to an object that begins with its word.
///
/// # Errors
///
/// `-EINVAL` for NULL, `-EXDEV` for an object of another copy.
///
/// # Safety
///
/// `object` is NULL or points to a counter, a histogram, or an object of static storage that begins
/// with its word, and outlives `'a`.
#[inline(always)]
pub(crate) unsafe fn own<'a, T>(object: *const T) -> Result<&'a T, c_int> {
    // SAFETY: the caller guarantees NULL or an object that begins with its word; words change only
    // atomically.
    let word = unsafe { object.cast::<AtomicU64>().as_ref() }.ok_or(-libc::EINVAL)?;
    if percid::capi::is_foreign(word.load(Relaxed) as usize) {
        return Err(refused());
    }
    // SAFETY: the caller guarantees NULL or an object that outlives `'a`, and it is not NULL.
    Ok(unsafe { &*object })
}

/// Returns the error for an object of another copy. Prints its meaning once in the process.
#[cold]
pub(crate) fn refused() -> c_int {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Relaxed) {
        percid::capi::say(format_args!(
            "an object of another copy of percid in this process is refused, and what was to be \
             done with it is not done (see \"Copies\" in percid.h)"
        ));
    }
    -libc::EXDEV
}
