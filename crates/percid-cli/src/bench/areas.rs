//! The memory of the intermittent benchmark: one area per index, each on separate pages.

use percid_command::burst::AREA;
use std::io;
use std::ptr::{self, NonNull};

/// Areas in one private anonymous mapping, page-aligned and never backed by huge pages.
#[derive(Debug)]
pub(crate) struct Areas {
    start: NonNull<u8>,
    count: usize,
    /// Bytes from one area to the next: whole pages.
    stride: usize,
}

// SAFETY: `Areas` owns its mapping, and `area` gives access to it by the borrow rules.
unsafe impl Send for Areas {}

impl Areas {
    /// Maps `count` areas copy-on-write: readable, but a page's first write takes a minor fault.
    pub(crate) fn map(count: usize) -> io::Result<Self> {
        let stride = AREA.next_multiple_of(page_size());
        // SAFETY: a new private mapping at an address of the kernel's choice touches no existing
        // memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count * stride,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        let mut areas = Areas { start: start.ok_or_else(io::Error::last_os_error)?, count, stride };
        areas.refuse_huge_pages();
        areas.refuse_hint_faults();
        areas.read_every_page();
        Ok(areas)
    }

    /// Disables huge pages, because the first write to an area would also map its neighbours. A
    /// kernel without huge pages may refuse.
    fn refuse_huge_pages(&mut self) {
        // SAFETY: the range is exactly our mapping, and the advice changes no content.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len(), libc::MADV_NOHUGEPAGE) };
    }

    /// Disables NUMA hint faults. The kernel's NUMA balancing unmaps pages regularly to detect the
    /// threads that access them, and these faults would be counted too. It ignores ranges with a
    /// policy; this policy is equivalent to the default. Kernels without NUMA refuse it, which is
    /// correct.
    fn refuse_hint_faults(&mut self) {
        const MPOL_LOCAL: libc::c_long = 4;
        // SAFETY: the range is exactly our mapping, and a policy changes no content.
        unsafe {
            libc::syscall(libc::SYS_mbind, self.start.as_ptr(), self.len(), MPOL_LOCAL, 0, 0, 0)
        };
    }

    /// Maps the kernel's zero page everywhere, so that the first burst pays for the write only.
    fn read_every_page(&mut self) {
        for offset in (0..self.len()).step_by(page_size()) {
            // SAFETY: `offset` is inside this mapping, which is readable.
            unsafe { self.start.add(offset).read_volatile() };
        }
    }

    /// Writes to every page, so that no burst takes a fault.
    pub(crate) fn prefault(&mut self) {
        for offset in (0..self.len()).step_by(page_size()) {
            // SAFETY: `offset` is inside this mapping, which is writable, and `self` is borrowed
            // exclusively.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }

    /// Returns the area of `index`, unless there are fewer.
    pub(crate) fn area(&mut self, index: u32) -> Option<&mut [u8; AREA]> {
        let index = index as usize;
        // SAFETY: area `index` is inside this mapping, is initialised (zeros), and is borrowed as
        // long as `self`.
        (index < self.count).then(|| unsafe { self.start.add(index * self.stride).cast().as_mut() })
    }

    fn len(&self) -> usize {
        self.count * self.stride
    }
}

impl Drop for Areas {
    fn drop(&mut self) {
        // SAFETY: the range is exactly our mapping, and no area outlives the borrow of `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len()) };
    }
}

fn page_size() -> usize {
    // SAFETY: the call takes a constant and accesses no memory.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
