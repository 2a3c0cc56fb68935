//! The memory that all threads share.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::numa::pages::page_size;

/// A mapping of small pages.
#[derive(Debug)]
pub(super) struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory is changed by atomics, or by callers who guarantee that no other thread uses it.
unsafe impl Send for Area {}
// SAFETY: memory is changed by atomics, or by callers who guarantee that no other thread uses it.
unsafe impl Sync for Area {}

impl Area {
    pub(super) fn new(bytes: usize) -> io::Result<Area> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        let mapped = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let start = mapped.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the range was mapped above. Kernels without huge pages refuse, which is harmless.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Area { start, bytes })
    }

    pub(super) fn start(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Returns the addresses of a part.
    pub(super) fn addresses(&self, part: &Range<usize>) -> Range<usize> {
        let start = self.start.as_ptr().expose_provenance();
        start + part.start..start + part.end
    }

    /// Writes zeros to the page at an offset, which other threads may write at the same time.
    pub(super) fn zero_shared(&self, offset: usize) {
        for word in (offset..offset + page_size()).step_by(size_of::<AtomicU64>()) {
            assert!(word < self.bytes);
            // SAFETY: the word is inside the mapping, aligned, and at this time accessed by atomics
            // only.
            unsafe { self.start.cast::<AtomicU64>().byte_add(word).as_ref() }.store(0, Relaxed);
        }
    }

    /// Writes zeros to the page at an offset.
    ///
    /// # Safety
    ///
    /// No other thread reads or writes it.
    pub(super) unsafe fn zero_own(&self, offset: usize) {
        assert!(offset + page_size() <= self.bytes);
        // SAFETY: the page is inside the mapping, and the caller guarantees that no other thread
        // uses it.
        unsafe { self.start.add(offset).write_bytes(0, page_size()) };
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
