//! The memory of the intermittent benchmark: one area per index, each on pages of its own.

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

// SAFETY: `Areas` owns its mapping; what can be reached through it follows the borrow rules of
// `area`.
unsafe impl Send for Areas {}

impl Areas {
    /// Maps `count` areas copy-on-write: readable, but a page's first write takes a minor fault.
    pub(crate) fn map(count: usize) -> io::Result<Self> {
        let stride = AREA.next_multiple_of(page_size());
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of
        // ours.
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

    /// A huge page would let one area's first write bring in its neighbours. A kernel without them
    /// may refuse.
    fn refuse_huge_pages(&mut self) {
        // SAFETY: the range is exactly our mapping, and the advice changes no content.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len(), libc::MADV_NOHUGEPAGE) };
    }

    /// The kernel's NUMA balancing unmaps pages now and then to see which threads touch them, and
    /// the faults would be counted as ours. It leaves ranges with a policy alone; this one says
    /// what the default does. Kernels without NUMA refuse it, rightly.
    fn refuse_hint_faults(&mut self) {
        const MPOL_LOCAL: libc::c_long = 4;
        // SAFETY: the range is exactly our mapping, and a policy changes no content.
        unsafe {
            libc::syscall(libc::SYS_mbind, self.start.as_ptr(), self.len(), MPOL_LOCAL, 0, 0, 0)
        };
    }

    /// Maps the kernel's page of zeros everywhere, so that the first burst pays for the write
    /// alone.
    fn read_every_page(&mut self) {
        for offset in (0..self.len()).step_by(page_size()) {
            // SAFETY: `offset` lies inside our mapping, which is readable.
            unsafe { self.start.add(offset).read_volatile() };
        }
    }

    /// Writes to every page, so that no burst takes a fault.
    pub(crate) fn prefault(&mut self) {
        for offset in (0..self.len()).step_by(page_size()) {
            // SAFETY: `offset` lies inside our mapping, which is writable, and `self` is borrowed
            // exclusively.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }

    /// The area of `index`, unless there are fewer.
    pub(crate) fn area(&mut self, index: u32) -> Option<&mut [u8; AREA]> {
        let index = index as usize;
        // SAFETY: area `index` lies inside our mapping, is initialised (zeros), and is borrowed as
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
    // SAFETY: takes a constant, touches no memory.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
