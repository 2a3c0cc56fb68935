//! Mapping memory.

use std::ptr::{self, NonNull};

use super::{leak_detector, stays};
use crate::sys::pages;
#[cfg(test)]
use crate::sys::steps::{self, Step};

/// Reserves `bytes` of address space that uses no memory and cannot be touched yet.
///
/// Huge pages are refused: with them the first touch of an ID's memory would cost 2 MiB.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    stays::require();
    let start = map_with(bytes, libc::PROT_NONE, libc::MAP_NORESERVE)?;
    // SAFETY: the range was mapped above. Failure (a kernel without huge pages) is harmless.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    // After `mlockall(MCL_FUTURE)` opening a part would fill it with memory at once, on the node of
    // the CPU that opens it.
    // SAFETY: the range was mapped above.
    unsafe { libc::munlock(start.as_ptr().cast(), bytes) };
    Some(start)
}

/// Makes a part of a reservation readable and writable; it reads as zero until written.
///
/// # Safety
///
/// The range must lie inside a reservation made by [`reserve`].
pub(crate) unsafe fn open(start: *mut u8, bytes: usize) -> bool {
    #[cfg(test)]
    if let Some(answer) = steps::at(Step::Open) {
        return answer.is_ok();
    }
    // SAFETY: the caller guarantees that the range lies inside a reservation; widening the
    // protection of memory that is inaccessible or open already does not affect other users.
    unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Maps zeroed memory.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(test)]
    if let Some(Err(_)) = steps::at(Step::Map(bytes)) {
        return None;
    }
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

/// Returns the memory of whole pages to the kernel: they read as zero again. Returns `false` if
/// they are not whole pages of this machine, or the kernel refuses (locked memory).
///
/// # Safety
///
/// The range must lie in a mapping of this module, and no thread may use its contents.
pub(crate) unsafe fn discard(start: usize, bytes: usize) -> bool {
    if !pages::are_whole(start, bytes, pages::size()) {
        return false;
    }
    let start: *mut libc::c_void = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller guarantees that the range lies in a mapping of this module and that no
    // thread uses its contents.
    unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) == 0 }
}

/// Unmaps a mapping.
///
/// # Safety
///
/// The range must be a whole mapping of this module, and no thread may use it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    leak_detector::remove(start, bytes);
    // SAFETY: the caller guarantees that the range is a whole mapping of this module which no
    // thread uses.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

fn map_with(bytes: usize, protection: i32, flags: i32) -> Option<NonNull<u8>> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mut mapped = map_at_once(bytes, protection, flags);
    if mapped.is_none() && crate::sys::errno() == libc::EAGAIN {
        mapped = map_unlocked(bytes, protection, flags);
    }
    mapped.inspect(|&start| leak_detector::add(start, bytes))
}

fn map_at_once(bytes: usize, protection: i32, flags: i32) -> Option<NonNull<u8>> {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps no memory in
    // use.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Maps memory if every mapping is locked (`mlockall(MCL_FUTURE)`) and so much may not be locked
/// (`RLIMIT_MEMLOCK`), not even inaccessible address space. One page may be locked. It is unlocked,
/// and the growth of an unlocked mapping does not count.
fn map_unlocked(bytes: usize, protection: i32, flags: i32) -> Option<NonNull<u8>> {
    const PAGE: usize = 4096;
    let page = map_at_once(PAGE, protection, flags)?;
    let place = page.as_ptr().cast();
    // SAFETY: the page was mapped above, and no other thread has access to it. Both calls round its
    // length up to a page of the machine.
    let grown = unsafe {
        libc::munlock(place, PAGE);
        libc::mremap(place, PAGE, bytes, libc::MREMAP_MAYMOVE)
    };
    if grown == libc::MAP_FAILED {
        // SAFETY: the page is still mapped, and still no other thread has access to it.
        unsafe { libc::munmap(place, PAGE) };
        return None;
    }
    NonNull::new(grown.cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    const PAGE: usize = 4096;

    fn byte(start: NonNull<u8>, offset: usize) -> &'static AtomicU8 {
        // SAFETY: the tests unmap memory only after its last use.
        unsafe { start.add(offset).cast().as_ref() }
    }

    /// Returns `true` if the mapping of an address has a flag, by its name in `smaps`.
    fn has(start: NonNull<u8>, offset: usize, flag: &str) -> bool {
        let address = start.addr().get() + offset;
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("/proc");
        let number = |text| usize::from_str_radix(text, 16).ok();
        let mut inside = false;
        for line in smaps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            if let Some((Some(start), Some(end))) = range.map(|(a, b)| (number(a), number(b))) {
                inside = (start..end).contains(&address);
            }
            if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| inside) {
                return flags.split_whitespace().any(|other| other == flag);
            }
        }
        panic!("no mapping at {address:x}");
    }

    #[test]
    fn a_reservation_opens_in_parts_without_huge_pages() {
        let start = reserve(1 << 30).expect("address space");
        assert!(!has(start, 0, "rd") && !has(start, 0, "wr"));
        // SAFETY: inside the reservation.
        assert!(unsafe { open(start.as_ptr().add(PAGE), PAGE) });
        let writable = [0, 1, 2].map(|page| has(start, page * PAGE, "wr"));
        assert_eq!(writable, [false, true, false]);
        byte(start, PAGE).store(1, Relaxed);
        // A kernel without huge pages has no such flag either.
        let huge = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(has(start, PAGE, "nh"), huge);
        // Otherwise the opened memory would count against a memory limit.
        assert!(has(start, PAGE, "nr"));
        // SAFETY: no thread uses it.
        unsafe { unmap(start, 1 << 30) };
    }

    #[test]
    fn a_mapping_that_grew_from_a_page_is_zeroed_and_not_locked() {
        let read_write = libc::PROT_READ | libc::PROT_WRITE;
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = map_unlocked(1 << 20, read_write, private).expect("memory");
        for offset in [0, PAGE, (1 << 20) - 1] {
            assert_eq!(byte(start, offset).fetch_add(1, Relaxed), 0);
        }
        assert!(!has(start, 0, "lo"));
        // SAFETY: no thread uses it.
        unsafe { unmap(start, 1 << 20) };
        assert_eq!(map_unlocked(1 << 60, libc::PROT_NONE, private), None);
    }

    /// The kernel would round the end up.
    #[test]
    fn parts_of_pages_are_not_discarded() {
        let start = map(2 * PAGE).expect("memory");
        [0, PAGE - 1].into_iter().for_each(|place| byte(start, place).store(7, Relaxed));
        // SAFETY: a mapping of this test.
        unsafe {
            assert!(!discard(start.as_ptr().expose_provenance(), PAGE / 2));
            assert_eq!([0, PAGE - 1].map(|place| byte(start, place).load(Relaxed)), [7; 2]);
            unmap(start, 2 * PAGE);
        }
    }

    #[test]
    fn what_is_locked_is_not_discarded() {
        let start = map(2 * PAGE).expect("memory");
        let at = |offset| byte(start, offset).load(Relaxed);
        [0, PAGE].into_iter().for_each(|page| byte(start, page).store(7, Relaxed));
        // SAFETY: whole pages of a mapping of this test.
        unsafe {
            assert!(discard(start.as_ptr().expose_provenance(), PAGE));
            assert_eq!((at(0), at(PAGE)), (0, 7));
            assert_eq!(libc::mlock(start.as_ptr().cast(), 2 * PAGE), 0);
            assert!(!discard(start.addr().get() + PAGE, PAGE));
            assert_eq!(at(PAGE), 7);
            unmap(start, 2 * PAGE);
        }
    }

    /// Returns `true` if `body` returns `true` in a child of `fork`, where no other thread runs.
    /// `body` must not allocate.
    fn in_a_child(body: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child only calls async-signal-safe functions, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let status = if body() { 42 } else { 1 };
            // SAFETY: it ends the child.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: the child is this thread's, and there is room for its status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        libc::WEXITSTATUS(status) == 42
    }

    #[test]
    fn a_child_finds_zeroes_in_what_a_fork_wipes() {
        let (wiped, kept) = (map_wiped_on_fork(PAGE).expect("memory"), map(PAGE).expect("memory"));
        [wiped, kept].into_iter().for_each(|start| byte(start, 8).store(3, Relaxed));
        let at = |start| byte(start, 8).load(Relaxed);
        assert!(in_a_child(|| (at(wiped), at(kept)) == (0, 3)));
        assert_eq!(at(wiped), 3);
        // SAFETY: no thread uses them any more.
        [wiped, kept].into_iter().for_each(|start| unsafe { unmap(start, PAGE) });
    }

    #[test]
    fn what_cannot_grow_leaves_nothing_behind() {
        // Each try would leave a page. A CPU emulator maps some pages for itself.
        const TRIES: u64 = 10_000;
        let pages =
            || crate::sys::file::first_number(c"/proc/self/statm").map(|pages| pages as u64);
        assert!(in_a_child(|| {
            let before = pages();
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let refused = |_| map_unlocked(1 << 60, libc::PROT_NONE, private).is_none();
            let all_refused = (0..TRIES).all(refused);
            let grown = before.zip(pages()).map(|(before, after)| after.saturating_sub(before));
            all_refused && grown.is_some_and(|grown| grown < TRIES / 2)
        }));
    }

    #[test]
    fn what_is_reserved_is_not_filled_where_all_is_locked() {
        const BYTES: usize = 64 << 20;
        let resident = |start: NonNull<u8>| {
            let mut pages = [1u8; 16];
            // SAFETY: the range is mapped, and there is a byte for each of its pages.
            let known = unsafe {
                libc::mincore(start.as_ptr().cast(), pages.len() * PAGE, pages.as_mut_ptr())
            };
            (known == 0).then(|| pages.iter().filter(|page| **page & 1 != 0).count())
        };
        assert!(in_a_child(|| {
            // SAFETY: the call takes a flag.
            let locked = unsafe { libc::mlockall(libc::MCL_FUTURE) } == 0;
            let (Some(start), Some(other)) = (reserve(BYTES), map(16 * PAGE)) else { return false };
            // SAFETY: inside the reservation.
            let opened = unsafe { open(start.as_ptr(), BYTES) };
            locked && opened && resident(start) == Some(0) && resident(other) == Some(16)
        }));
    }
}
