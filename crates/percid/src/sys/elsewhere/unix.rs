//! Unix systems, by their common functions: macOS, the BSDs, illumos, Android, Linux on 32 bits.
//!
//! Everything here is async-signal-safe. Unlike [`memory`](crate::sys::memory) on Linux, it has no
//! support for large pages, locked memory and memory limits.

use std::ptr::{self, NonNull};

use crate::sys::pages;
use libc::{MAP_ANON, MAP_FIXED, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE};

/// Reserves `bytes` of address space that cannot be touched yet.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map_as(ptr::null_mut(), bytes, PROT_NONE, 0)
}

/// Makes a part of a reservation readable and writable; it reads as zero until written.
///
/// # Safety
///
/// The range must lie inside a reservation made by [`reserve`].
pub(crate) unsafe fn open(start: *mut u8, bytes: usize) -> bool {
    // SAFETY: the caller guarantees that the range lies inside a reservation; widening the
    // protection of memory that is inaccessible or open already does not affect other users.
    unsafe { libc::mprotect(start.cast(), bytes, PROT_READ | PROT_WRITE) == 0 }
}

/// Maps zeroed memory.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    map_as(ptr::null_mut(), bytes, PROT_READ | PROT_WRITE, 0)
}

/// Returns the memory of whole pages to the kernel: they read as zero again. Returns `false` if
/// they are not whole pages of this machine, or the kernel refuses.
///
/// It replaces the mapping by a new one, because `madvise` guarantees zeros on Linux only. No other
/// thread finds the range unmapped in between: kernels replace a mapping in one step.
///
/// # Safety
///
/// The range must lie in a mapping of this module, and no thread may use its contents.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    if !pages::are_whole(start, bytes, pages::size()) {
        return false;
    }
    let start = ptr::with_exposed_provenance_mut(start);
    map_as(start, bytes, PROT_READ | PROT_WRITE, MAP_FIXED).is_some()
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

/// Maps memory at an address that belongs to the caller, or anywhere.
fn map_as(place: *mut u8, bytes: usize, protection: i32, flags: i32) -> Option<NonNull<u8>> {
    let flags = flags | MAP_PRIVATE | MAP_ANON;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps no memory in
    // use. If an address is given, the range belongs to the caller, and no thread uses its
    // contents.
    let start = unsafe { libc::mmap(place.cast(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Returns the CPU that runs the calling thread, which may be out of date at once; `None` if the
/// system has no cheap way to read it.
#[cfg(any(
    target_os = "android",
    target_os = "dragonfly",
    target_os = "freebsd",
    target_os = "linux"
))]
pub(crate) fn current_cpu() -> Option<u32> {
    // SAFETY: the call has no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Returns `None`: these systems have no cheap way to read the CPU number.
#[cfg(not(any(
    target_os = "android",
    target_os = "dragonfly",
    target_os = "freebsd",
    target_os = "linux"
)))]
pub(crate) fn current_cpu() -> Option<u32> {
    None
}

/// Returns the process's number, which its child by `fork` does not have.
pub(crate) fn process_number() -> u32 {
    // SAFETY: the call has no arguments.
    unsafe { libc::getpid() as u32 }
}
