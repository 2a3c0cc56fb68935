//! Memory mappings of percid.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};

/// Maps zeroed memory.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    map_with(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
}

/// Maps zeroed memory that becomes zero again in the child of every `fork`.
///
/// Returns `None` if there is no memory, or if the kernel does not support `MADV_WIPEONFORK` (Linux
/// 4.14).
pub(crate) fn map_wiped_on_fork(bytes: usize) -> Option<NonNull<u8>> {
    let start = map(bytes)?;
    // SAFETY: the range was mapped above.
    if unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: nothing uses the mapping yet.
        unsafe { unmap(start, bytes) };
        return None;
    }
    Some(start)
}

/// Maps zeroed memory that behaves like any other, but has the name of a file in `/proc/self/maps`:
/// no other mapping merges with it, and it cannot be registered as the program's memory. Returns
/// `None` also without `/dev/zero`.
pub(crate) fn map_under_a_name(bytes: usize) -> Option<NonNull<u8>> {
    let file = File::open("/dev/zero").ok()?;
    map_with(bytes, libc::MAP_PRIVATE, file.as_raw_fd())
}

/// Returns the size of a page in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: the call only reads the auxiliary vector.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Returns which of some whole pages have memory; `None` if the kernel does not report it. Only for
/// private memory: for files the kernel reports which pages are cached.
pub(crate) fn resident(range: &Range<usize>) -> Option<Vec<bool>> {
    let mut bytes = vec![0u8; range.len() / page_size()];
    let start: *mut libc::c_void = ptr::without_provenance_mut(range.start);
    // SAFETY: there is a byte for each page; a range that is not mapped is an error.
    let done = unsafe { libc::mincore(start, range.len(), bytes.as_mut_ptr()) };
    (done == 0).then(|| bytes.into_iter().map(|byte| byte & 1 == 1).collect())
}

/// Changes the access rights of whole pages: `PROT_READ`, `PROT_WRITE`, `PROT_EXEC`, or none of
/// them.
///
/// # Errors
///
/// The `errno`: `ENOMEM` if a part is not mapped, or the process has too many mappings.
///
/// # Safety
///
/// The program expects that its memory there has these rights, or handles the faults.
pub(crate) unsafe fn protect(start: usize, bytes: usize, rights: i32) -> Result<(), i32> {
    let start: *mut libc::c_void = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller ensures that the program expects these rights or handles the faults.
    if unsafe { libc::mprotect(start, bytes, rights) } == 0 { Ok(()) } else { Err(super::errno()) }
}

/// Returns `true` if private writable memory is limited, or if the kernel does not report it.
pub(crate) fn data_is_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place is valid.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_DATA, &mut limit) } == 0;
    !known || limit.rlim_cur != libc::RLIM_INFINITY
}

/// Unmaps a mapping.
///
/// # Safety
///
/// The range must be a whole mapping of this module, and nothing may use it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller ensures that the range is a whole mapping that nothing uses any more.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Maps memory with the rights to read and write.
pub(crate) fn map_with(bytes: usize, flags: i32, file: RawFd) -> Option<NonNull<u8>> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, file, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}
