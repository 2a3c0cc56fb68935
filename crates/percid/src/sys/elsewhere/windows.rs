//! Windows, with functions of `kernel32` that exist in every version since 7.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_RELEASE: u32 = 0x8000;
const MEM_RESET: u32 = 0x8_0000;
const MEM_WRITE_WATCH: u32 = 0x20_0000;
const PAGE_NOACCESS: u32 = 1;
const PAGE_READWRITE: u32 = 4;

#[repr(C)]
#[derive(Default)]
struct ProcessorNumber {
    group: u16,
    number: u8,
    reserved: u8,
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn VirtualAlloc(start: *mut c_void, bytes: usize, kind: u32, protection: u32) -> *mut c_void;
    fn VirtualFree(start: *mut c_void, bytes: usize, kind: u32) -> i32;
    fn GetWriteWatch(
        flags: u32,
        start: *mut c_void,
        bytes: usize,
        pages: *mut *mut c_void,
        count: *mut usize,
        page_bytes: *mut u32,
    ) -> u32;
    fn ResetWriteWatch(start: *mut c_void, bytes: usize) -> u32;
    fn GetCurrentProcessorNumberEx(number: *mut ProcessorNumber);
}

/// Reserves `bytes` of address space that uses no memory and cannot be touched yet.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: memory at an address of the system's choice overlaps no memory in use.
    unsafe { allocate(ptr::null_mut(), bytes, MEM_RESERVE | MEM_WRITE_WATCH, PAGE_NOACCESS) }
}

/// Makes a part of a reservation readable and writable; it reads as zero until written.
///
/// # Safety
///
/// The range must lie inside a reservation made by [`reserve`].
pub(crate) unsafe fn open(start: *mut u8, bytes: usize) -> bool {
    // SAFETY: the caller guarantees that the range lies inside a reservation; committing committed
    // memory changes nothing.
    unsafe { allocate(start, bytes, MEM_COMMIT, PAGE_READWRITE).is_some() }
}

/// Maps zeroed memory.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let kind = MEM_RESERVE | MEM_COMMIT | MEM_WRITE_WATCH;
    // SAFETY: memory at an address of the system's choice overlaps no memory in use.
    unsafe { allocate(ptr::null_mut(), bytes, kind, PAGE_READWRITE) }
}

/// Zeroes memory, and lets the system reclaim it without writing it to the page file.
///
/// It does not decommit the memory: a thread that has lost a race may still read freed memory, and
/// must find it mapped. Only pages that were written are touched. A reset page keeps its contents
/// or is zeroed, so both are zero. It still counts as the process's memory.
///
/// # Safety
///
/// The range must lie in memory of this module, and no thread may use its contents.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    let first: *mut u8 = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller guarantees that the range is memory of this module whose contents no
    // thread uses. A reset does not change the contents.
    unsafe {
        if !zero_written(start, start + bytes) {
            first.write_bytes(0, bytes);
        }
        ResetWriteWatch(first.cast(), bytes);
        allocate(first, bytes, MEM_RESET, PAGE_READWRITE);
    }
    true
}

/// Zeroes the pages of a range that were written since they were opened or since their watch was
/// reset. Returns `false` if the system does not report them.
///
/// # Safety
///
/// The same as for [`discard`].
unsafe fn zero_written(mut start: usize, end: usize) -> bool {
    let mut pages = [ptr::null_mut::<c_void>(); 64];
    while start < end {
        let (mut count, mut page_bytes) = (pages.len(), 0);
        let place = ptr::with_exposed_provenance_mut(start);
        // SAFETY: `pages` has room for `count` addresses.
        let error = unsafe {
            GetWriteWatch(0, place, end - start, pages.as_mut_ptr(), &mut count, &mut page_bytes)
        };
        if error != 0 {
            return false;
        }
        for &page in &pages[..count] {
            let beyond = (page.addr() + page_bytes as usize).min(end);
            // SAFETY: the part of the page that belongs to the range.
            unsafe { page.cast::<u8>().write_bytes(0, beyond - page.addr()) };
        }
        if count < pages.len() {
            break;
        }
        start = pages[count - 1].addr() + page_bytes as usize;
    }
    true
}

/// Frees memory.
///
/// # Safety
///
/// The address must be one that [`reserve`] or [`map`] returned, and no thread may use the memory.
pub(crate) unsafe fn unmap(start: NonNull<u8>, _bytes: usize) {
    // SAFETY: the caller guarantees that the address is the start of an allocation which no thread
    // uses.
    unsafe { VirtualFree(start.as_ptr().cast(), 0, MEM_RELEASE) };
}

/// # Safety
///
/// The range is null, or memory of this module.
unsafe fn allocate(
    start: *mut u8,
    bytes: usize,
    kind: u32,
    protection: u32,
) -> Option<NonNull<u8>> {
    // SAFETY: the caller guarantees that the range is null or memory of this module.
    NonNull::new(unsafe { VirtualAlloc(start.cast(), bytes, kind, protection) }.cast())
}

/// Returns the CPU that runs the calling thread, which may be out of date at once. Groups have up
/// to 64 CPUs.
pub(crate) fn current_cpu() -> Option<u32> {
    let mut place = ProcessorNumber::default();
    // SAFETY: `place` is valid for the result.
    unsafe { GetCurrentProcessorNumberEx(&mut place) };
    Some(u32::from(place.group) * 64 + u32::from(place.number))
}

/// Returns 0: no process has the memory of another one.
pub(crate) fn process_number() -> u32 {
    0
}
