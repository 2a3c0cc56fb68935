//! Memory that is mapped for a test.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::pinning;

pub(super) const PAGE: usize = 4096;

pub(super) const HUGE: usize = 2 << 20;

/// The kind of pages of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    Small,
    /// Transparent huge pages, if the kernel has some.
    Huge,
}

/// A mapping; unmapped when dropped.
#[derive(Debug)]
pub(super) struct Area {
    start: usize,
    bytes: usize,
}

impl Area {
    /// Maps small pages that were never touched.
    pub(super) fn new(bytes: usize) -> Result<Area, String> {
        let area = Area::map(bytes, libc::MAP_PRIVATE)?;
        // SAFETY: the mapping is this value's own.
        unsafe { libc::madvise(area.address(), bytes, libc::MADV_NOHUGEPAGE) };
        Ok(area)
    }

    /// Makes an area like [`new`](Area::new), with huge pages.
    fn huge(bytes: usize) -> Result<Area, String> {
        let area = Area::map(bytes, libc::MAP_PRIVATE)?;
        // A kernel with less than 512 MiB of memory has them switched off.
        const SWITCH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
        std::fs::write(SWITCH, "madvise").map_err(|error| format!("{SWITCH}: {error}"))?;
        // SAFETY: the mapping is this value's own.
        unsafe { libc::madvise(area.address(), bytes, libc::MADV_HUGEPAGE) };
        Ok(area)
    }

    fn address(&self) -> *mut libc::c_void {
        self.start as *mut libc::c_void
    }

    /// Maps pages of the size that the kernel likes best, and that were never touched.
    pub(super) fn of_any_pages(bytes: usize) -> Result<Area, String> {
        Area::map(bytes, libc::MAP_PRIVATE)
    }

    /// Makes an area that children of `fork` share.
    pub(super) fn shared(bytes: usize) -> Result<Area, String> {
        Area::map(bytes, libc::MAP_SHARED)
    }

    /// Makes an area that may be larger than the machine's memory, because little of it is used.
    pub(super) fn sparse(bytes: usize) -> Result<Area, String> {
        let area = Area::map(bytes, libc::MAP_PRIVATE | libc::MAP_NORESERVE)?;
        // SAFETY: the mapping is this value's own.
        unsafe { libc::madvise(area.address(), bytes, libc::MADV_NOHUGEPAGE) };
        Ok(area)
    }

    /// Maps the area from a multiple of the size of huge pages on, so that no grain is cut.
    fn map(bytes: usize, flags: i32) -> Result<Area, String> {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes + HUGE, rights, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(format!("no {bytes} bytes of memory"));
        }
        let lead = start.addr().next_multiple_of(HUGE) - start.addr();
        // SAFETY: both parts are of the new mapping, and were never touched.
        unsafe {
            libc::munmap(start, lead);
            libc::munmap(start.byte_add(lead + bytes), HUGE - lead);
        }
        Ok(Area { start: start as usize + lead, bytes })
    }

    /// Makes an area whose pages were first written on these CPUs.
    pub(super) fn on(cpus: &[u32], bytes: usize, pages: Pages) -> Result<Area, String> {
        let area = match pages {
            Pages::Small => Area::new(bytes)?,
            Pages::Huge => Area::huge(bytes)?,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pinning::restrict(0, cpus);
                (0..area.pages()).for_each(|page| area.word(page).store(1, Relaxed));
            });
        });
        let huge = area.huge_bytes();
        if pages == Pages::Huge && huge < bytes {
            return Err(format!("{huge} of {bytes} bytes are in huge pages"));
        }
        Ok(area)
    }

    /// Returns how much of its mapping consists of huge pages.
    pub(super) fn huge_bytes(&self) -> usize {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let start = format!("{:x}-", self.start);
        let lines = text.lines().skip_while(|line| !line.starts_with(&start));
        let kib = lines.take(30).find_map(|line| line.strip_prefix("AnonHugePages:"));
        let kib = kib.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse::<usize>().ok());
        kib.unwrap_or(0) * 1024
    }

    pub(super) fn start(&self) -> *const u8 {
        self.start as *const u8
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn pages(&self) -> usize {
        self.bytes / PAGE
    }

    /// Returns the first word of a page.
    pub(super) fn word(&self, page: usize) -> &AtomicU64 {
        assert!(page < self.pages());
        // SAFETY: inside the mapping, aligned, and used as an atomic only.
        unsafe { &*((self.start + page * PAGE) as *const AtomicU64) }
    }

    /// Changes the access rights.
    pub(super) fn protect(&self, rights: i32) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::mprotect(self.start as *mut libc::c_void, self.bytes, rights) };
    }
}

/// Operations of programs on their memory.
impl Area {
    /// Unmaps some pages. They must not be used afterwards.
    pub(super) fn unmap(&self, pages: Range<usize>) {
        assert!(pages.end <= self.pages());
        let start = (self.start + pages.start * PAGE) as *mut libc::c_void;
        // SAFETY: the pages are this value's own.
        unsafe { libc::munmap(start, pages.len() * PAGE) };
    }

    /// Maps new memory in the place of some pages.
    pub(super) fn replace(&self, pages: Range<usize>) {
        assert!(pages.end <= self.pages());
        let start = (self.start + pages.start * PAGE) as *mut libc::c_void;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the pages are this value's own, and used as atomics only, which zeros are too.
        unsafe { libc::mmap(start, pages.len() * PAGE, rights, flags, -1, 0) };
    }

    /// Discards the contents.
    pub(super) fn discard(&self) {
        // SAFETY: as in `replace`.
        unsafe { libc::madvise(self.start as *mut libc::c_void, self.bytes, libc::MADV_DONTNEED) };
    }

    /// Requests huge pages from now on.
    pub(super) fn prefer_huge_pages(&self) {
        // SAFETY: changes the size of future pages only.
        unsafe { libc::madvise(self.start as *mut libc::c_void, self.bytes, libc::MADV_HUGEPAGE) };
    }

    /// Makes huge pages of the small ones, now (Linux 6.1).
    pub(super) fn collapse(&self) -> Result<(), String> {
        const COLLAPSE: i32 = 25;
        // SAFETY: changes the size of pages only.
        let done = unsafe { libc::madvise(self.address(), self.bytes, COLLAPSE) };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
    }

    /// Moves the memory to another address.
    pub(super) fn moved(self) -> Result<Area, String> {
        let place = Area::new(self.bytes)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both mappings are the test's; the one at the target is replaced.
        let moved = unsafe {
            let (from, to) = (self.start as *mut libc::c_void, place.start as *mut libc::c_void);
            libc::mremap(from, self.bytes, self.bytes, flags, to)
        };
        if moved == libc::MAP_FAILED {
            return Err("memory cannot be moved".to_owned());
        }
        std::mem::forget(self);
        Ok(place)
    }

    /// Forbids access to a page. `false` if the kernel refuses: every such page splits a mapping.
    pub(super) fn protect_page(&self, page: usize) -> bool {
        assert!(page < self.pages());
        let start = (self.start + page * PAGE) as *mut libc::c_void;
        // SAFETY: the page is this value's own.
        unsafe { libc::mprotect(start, PAGE, libc::PROT_NONE) == 0 }
    }

    /// Unmaps half of the memory.
    pub(super) fn unmap_second_half(&mut self) {
        let half = self.bytes / 2;
        // SAFETY: the mapping is this value's own, and its users borrow this value.
        unsafe { libc::munmap((self.start + half) as *mut libc::c_void, self.bytes - half) };
        self.bytes = half;
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.bytes) };
    }
}
