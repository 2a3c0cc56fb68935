//! [`memory`](super::memory) with the system calls that Miri supports: all memory is open from the
//! start. Pages are discarded by writing zeros, so that Miri detects threads that still use them.

use std::ptr::{self, NonNull};

/// Reserves `bytes` of address space; unlike in the real module, the memory can be touched.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes)
}

/// Opens a part of a reservation, which is open already.
///
/// # Safety
///
/// The range must lie inside a reservation made by [`reserve`].
pub(crate) unsafe fn open(_start: *mut u8, _bytes: usize) -> bool {
    true
}

/// Maps zeroed memory.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping overlaps no memory in use.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Maps zeroed memory; no process forks in Miri.
pub(crate) fn map_wiped_on_fork(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes)
}

/// Zeroes the memory of whole pages.
///
/// # Safety
///
/// The range must lie in a mapping of this module, and no thread may use its contents.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    let start: *mut u8 = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller guarantees that the range is mapped and that no thread uses its contents.
    // The write is not atomic: Miri reports a race with any thread that still uses the pages.
    unsafe { start.write_bytes(0, bytes) };
    true
}

/// Unmaps a mapping.
///
/// # Safety
///
/// The range must be a whole mapping of this module, and no thread may use it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller guarantees that the range is a whole mapping of this module which no
    // thread uses.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}
