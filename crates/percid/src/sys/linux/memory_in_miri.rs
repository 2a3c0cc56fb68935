//! [`memory`](super::memory) as far as Miri knows system calls: all memory is open from the start,
//! and pages are given back by writing zeros, so that Miri sees who still uses them.

use std::ptr::{self, NonNull};

/// As in the true module, but the memory can be touched.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes)
}

/// As in the true module.
///
/// # Safety
///
/// As in the true module.
pub(crate) unsafe fn open(_start: *mut u8, _bytes: usize) -> bool {
    true
}

/// As in the true module.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping touches no memory in use.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// As in the true module: no process forks in Miri.
pub(crate) fn map_wiped_on_fork(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes)
}

/// As in the true module.
///
/// # Safety
///
/// As in the true module.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    let start: *mut u8 = ptr::with_exposed_provenance_mut(start);
    // SAFETY: by contract. It is no atomic access: a thread that still uses the pages is a race.
    unsafe { start.write_bytes(0, bytes) };
    true
}

/// As in the true module.
///
/// # Safety
///
/// As in the true module.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: by contract.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}
