//! Several copies of percid in one process.
//!
//! An object belongs to the copy whose function was the first to use it. Another copy has other
//! memory, other IDs and perhaps another layout, so it can do nothing right with the object. The
//! functions that are called see that and refuse; what is inline does not look.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What tells this copy from others: an address that no other copy can give it. (The table's would
/// be looked up, and the first look binds all modules to what it finds.)
pub(crate) fn this() -> u64 {
    percid::capi::FAST_PATH_WORDS.addr() as u64
}

/// An object that begins with its word.
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
    // SAFETY: by contract; words change only atomically.
    let word = unsafe { object.cast::<AtomicU64>().as_ref() }.ok_or(-libc::EINVAL)?;
    if percid::capi::is_foreign(word.load(Relaxed) as usize) {
        return Err(refused());
    }
    // SAFETY: by contract, and it is not NULL.
    Ok(unsafe { &*object })
}

/// The answer about an object of another copy. Says once in the process what that means.
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
