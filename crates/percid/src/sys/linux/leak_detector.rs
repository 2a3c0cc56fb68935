//! LeakSanitizer: it searches for pointers in global variables, stacks and the heap, and not in
//! memory that a library mapped. It would report an object as lost if only a value in percid's
//! memory points to it. If LeakSanitizer is linked, each mapping is registered with it.
//!
//! # Facts of its interface
//!
//! The functions are in compiler-rt's `sanitizer/lsan_interface.h`:
//! `__lsan_register_root_region(const void *, size_t)` and `__lsan_unregister_root_region`. The
//! latter ends the process unless both arguments are those of a registered region. The parts of a
//! region that cannot be read are left out when the search begins. Both take a lock that the search
//! holds too. In a process with LeakSanitizer, a signal handler that interrupts the search may
//! therefore not be the first to use an object.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::sys::weak::weak;

type OnRegion = unsafe extern "C" fn(*const c_void, usize);

/// Registers a mapping that may hold pointers.
pub(super) fn add(start: NonNull<u8>, bytes: usize) {
    call(weak!("__lsan_register_root_region"), start, bytes);
}

/// Unregisters a mapping before it is unmapped. The same mapping was [added](add).
pub(super) fn remove(start: NonNull<u8>, bytes: usize) {
    call(weak!("__lsan_unregister_root_region"), start, bytes);
}

fn call(address: usize, start: NonNull<u8>, bytes: usize) {
    // SAFETY: null, or the address of one of the runtime's functions, which have this type.
    if let Some(function) = unsafe { std::mem::transmute::<usize, Option<OnRegion>>(address) } {
        // SAFETY: the region is a mapping, and it is added once and removed once.
        unsafe { function(start.as_ptr().cast(), bytes) };
    }
}
