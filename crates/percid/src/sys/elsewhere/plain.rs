//! The functions that Rust's standard library provides: memory from the allocator, threads without
//! known CPUs, and no `fork`.
//!
//! The guarantees of [`memory`](crate::sys::memory) hold with these exceptions. Reserved memory is
//! allocated at once if the allocator or the system makes no difference between the two. Discarded
//! memory is zeroed and stays allocated. The allocator is not async-signal-safe.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};

/// The alignment of blocks.
const PAGE: usize = 4096;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), PAGE).ok()
}

pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes)
}

/// # Safety
///
/// None: the memory is open.
pub(crate) unsafe fn open(_start: *mut u8, _bytes: usize) -> bool {
    true
}

pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: the layout has a nonzero size.
    NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })
}

/// # Safety
///
/// No thread uses the range, which is memory of this module.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    let start: *mut u8 = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller guarantees that the range is memory of this module and that no thread uses
    // it.
    unsafe { start.write_bytes(0, bytes) };
    true
}

/// # Safety
///
/// The range is the whole result of one call of [`map`] or [`reserve`], and no thread uses it.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: the caller guarantees that the range is a whole allocation, which was made with
        // this layout.
        unsafe { dealloc(start.as_ptr(), layout) };
    }
}

/// Returns the CPU that runs the calling thread, which is unknown here.
pub(crate) fn current_cpu() -> Option<u32> {
    None
}

/// Returns the process's number among those that share its memory's history: it is the only one.
pub(crate) fn process_number() -> u32 {
    0
}
