//! Objects that are their word, when they are destroyed: once, however often they were copied.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::copies;

/// Destroys an object, unless it is NULL or another copy of percid's. `destroy` answers whether the
/// object had memory that was its own, or none.
///
/// # Safety
///
/// `object` is NULL or points to a counter or histogram that no other thread uses.
pub(crate) unsafe fn destroy<T>(object: *mut T, destroy: impl FnOnce(&mut T) -> bool) {
    // SAFETY: by contract.
    if unsafe { copies::own(object) }.is_err() {
        return;
    }
    // SAFETY: by contract, and it is not NULL.
    if !destroy(unsafe { &mut *object }) {
        report();
    }
}

/// Says once in the process what has been noticed.
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
