//! The system as far as Rust's standard library knows it: memory of the allocator, threads that
//! cannot tell their CPUs, and no `fork`.
//!
//! What [`memory`](crate::sys::memory) promises holds but for this: reserved memory is memory at
//! once where the allocator or the system makes no difference between the two; what is discarded is
//! zeroed and stays the process's; and the allocator is not async-signal-safe.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};

/// Blocks are aligned to as much.
const PAGE: usize = 4096;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), PAGE).ok()
}

pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes)
}

/// # Safety
///
/// None: it is open.
pub(crate) unsafe fn open(_start: *mut u8, _bytes: usize) -> bool {
    true
}

pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: the layout has a size.
    NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })
}

/// # Safety
///
/// No thread uses the range, which is memory of this module.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    let start: *mut u8 = ptr::with_exposed_provenance_mut(start);
    // SAFETY: by contract.
    unsafe { start.write_bytes(0, bytes) };
    true
}

/// # Safety
///
/// The range is all that one call of [`map`] or [`reserve`] has returned, and no thread uses it.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: by contract it was allocated with this layout.
        unsafe { dealloc(start.as_ptr(), layout) };
    }
}

/// The CPU that runs the calling thread.
pub(crate) fn current_cpu() -> Option<u32> {
    None
}

/// The process's number among those that share its memory's history: it is the only one.
pub(crate) fn process_number() -> u32 {
    0
}
