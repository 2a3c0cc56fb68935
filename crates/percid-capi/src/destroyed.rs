//! Destruction of objects that consist of their word: once, even if they were copied.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::copies;

/// Destroys an object, unless it is NULL or belongs to another copy of percid. `destroy` returns
/// `true` if the object had memory of its own, or none.
///
/// # Safety
///
/// `object` is NULL or points to a counter or histogram that no other thread uses.
pub(crate) unsafe fn destroy<T>(object: *mut T, destroy: impl FnOnce(&mut T) -> bool) {
    // SAFETY: the caller guarantees NULL or a counter or histogram that no other thread uses.
    if unsafe { copies::own(object) }.is_err() {
        return;
    }
    // SAFETY: the caller guarantees an object that no other thread uses, and it is not NULL.
    if !destroy(unsafe { &mut *object }) {
        report();
    }
}

/// Reports the detected copy once in the process.
#[cold]
fn report() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Relaxed) {
        percid::capi::say(format_args!(
            "the memory of a counter or histogram was given back before, through a copy of it, and \
             is not given back again (see percid_counter_destroy() in percid.h)"
        ));
    }
}
