//! Mapping memory.

use std::ptr::{self, NonNull};

/// Reserves `bytes` of address space that costs no memory and cannot be touched yet.
///
/// Huge pages are refused: with them the first touch of an ID's memory would cost 2 MiB.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    let start = map_with(bytes, libc::PROT_NONE, libc::MAP_NORESERVE)?;
    // SAFETY: the range was mapped above. Failure (a kernel without huge pages) is harmless.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    // After `mlockall(MCL_FUTURE)` opening a part would fill it with memory at once, on the node of
    // the CPU that opens it.
    // SAFETY: as above.
    unsafe { libc::munlock(start.as_ptr().cast(), bytes) };
    Some(start)
}

/// Makes a part of a reservation readable and writable; it reads as zero until written.
///
/// # Safety
///
/// The range must lie inside a reservation made by [`reserve`].
pub(crate) unsafe fn open(start: *mut u8, bytes: usize) -> bool {
    // SAFETY: the range is the caller's own mapping, by contract; widening the protection of memory
    // that is untouchable or open already takes nothing from other users.
    unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Maps zeroed memory.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    map_with(bytes, libc::PROT_READ | libc::PROT_WRITE, 0)
}

/// Maps zeroed memory that becomes zero again in the child of every `fork`.
///
/// `None` if memory or the kernel's support (`MADV_WIPEONFORK`, Linux 4.14) is missing.
pub(crate) fn map_wiped_on_fork(bytes: usize) -> Option<NonNull<u8>> {
    let start = map(bytes)?;
    // SAFETY: the range was mapped above.
    if unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: no other thread has seen the mapping yet.
        unsafe { unmap(start, bytes) };
        return None;
    }
    Some(start)
}

/// Gives the memory of whole pages back to the kernel: they read as zero again. `false` if the
/// kernel refuses (locked memory).
///
/// # Safety
///
/// The range must consist of whole pages of a mapping of this module, and no thread may use its
/// contents.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    let start: *mut libc::c_void = ptr::with_exposed_provenance_mut(start);
    // SAFETY: by contract.
    unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) == 0 }
}

/// Gives a mapping back.
///
/// # Safety
///
/// The range must be a whole mapping of this module, and no thread may use it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: by contract.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

fn map_with(bytes: usize, protection: i32, flags: i32) -> Option<NonNull<u8>> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mapped = map_at_once(bytes, protection, flags);
    if mapped.is_none() && super::errno() == libc::EAGAIN {
        return map_unlocked(bytes, protection, flags);
    }
    mapped
}

fn map_at_once(bytes: usize, protection: i32, flags: i32) -> Option<NonNull<u8>> {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in
    // use.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Maps memory where all that is mapped is locked (`mlockall(MCL_FUTURE)`) and so much may not be
/// locked (`RLIMIT_MEMLOCK`), not even address space that cannot be touched. One page may; it is
/// unlocked, and what a mapping that is not locked grows by does not count.
fn map_unlocked(bytes: usize, protection: i32, flags: i32) -> Option<NonNull<u8>> {
    const PAGE: usize = 4096;
    let page = map_at_once(PAGE, protection, flags)?;
    let place = page.as_ptr().cast();
    // SAFETY: the page was mapped above, and no other thread has seen it. Both calls round its
    // length up to a page of the machine.
    let grown = unsafe {
        libc::munlock(place, PAGE);
        libc::mremap(place, PAGE, bytes, libc::MREMAP_MAYMOVE)
    };
    if grown == libc::MAP_FAILED {
        // SAFETY: the page is still there, and still nobody else's.
        unsafe { unmap(page, PAGE) };
        return None;
    }
    NonNull::new(grown.cast())
}
