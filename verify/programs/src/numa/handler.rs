//! A signal handler that uses armed memory.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use crate::pinning;

static PLACE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
static USES: AtomicU64 = AtomicU64::new(0);

/// Makes SIGUSR1 add one to this word from now on.
///
/// # Safety
///
/// The word stays until the threads that are signalled have ended, or until [`uses_nothing`] was
/// called.
pub(super) unsafe fn uses(word: &AtomicU64) {
    PLACE.store(std::ptr::from_ref(word).cast_mut(), Relaxed);
    pinning::handle(libc::SIGUSR1, handle);
}

/// Makes the handler do nothing from now on.
pub(super) fn uses_nothing() {
    PLACE.store(std::ptr::null_mut(), Relaxed);
}

/// Returns how often the handler has used memory.
pub(super) fn uses_made() -> u64 {
    USES.load(Relaxed)
}

extern "C" fn handle(_: i32) {
    // SAFETY: null, or a word that stays, as `uses` demands.
    if let Some(word) = unsafe { PLACE.load(Relaxed).as_ref() } {
        word.fetch_add(1, Relaxed);
        USES.fetch_add(1, Relaxed);
    }
}
