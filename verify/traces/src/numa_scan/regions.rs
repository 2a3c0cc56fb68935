//! Regions of every kind that the scan distinguishes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// The parts that the scan arms at once end at multiples of this.
const HUGE: usize = 2 << 20;

/// Distance of pages with memory in bytes: few faults are enough.
const STRIDE: usize = 256 << 10;

/// A policy that binds to a node, but lets pages move. Missing in the C library's headers for Rust.
const BALANCING: i32 = libc::MPOL_BIND | 1 << 13;

const NODE_0: u64 = 1;

/// A region that is there until the process ends, or until it is unmapped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    start: usize,
    length: usize,
}

/// The kind of a mapping.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    access: i32,
    flags: i32,
    policy: Option<i32>,
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Kind {
    pub(super) const PRIVATE: Kind =
        Kind { access: READ_WRITE, flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, policy: None };
    pub(super) const SHARED: Kind =
        Kind { flags: libc::MAP_SHARED | libc::MAP_ANONYMOUS, ..Kind::PRIVATE };
    pub(super) const OF_FILE: Kind = Kind { flags: libc::MAP_PRIVATE, ..Kind::PRIVATE };
    pub(super) const READ_ONLY: Kind = Kind { access: libc::PROT_READ, ..Kind::OF_FILE };
    pub(super) const HIDDEN: Kind = Kind { access: libc::PROT_NONE, ..Kind::PRIVATE };
    pub(super) const BOUND: Kind = Kind { policy: Some(libc::MPOL_BIND), ..Kind::PRIVATE };
    pub(super) const BALANCING: Kind = Kind { policy: Some(BALANCING), ..Kind::PRIVATE };

    /// Maps this many pieces of 2 MiB, between guards that keep them from being merged with others.
    pub(super) fn map(self, pieces: usize, file: Option<&File>) -> io::Result<Region> {
        let length = pieces * HUGE;
        let guard = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let room = map_at(0, length + 2 * HUGE, libc::PROT_NONE, guard, None)?;
        let start = (room + 1).next_multiple_of(HUGE);
        map_at(start, length, self.access, self.flags | libc::MAP_FIXED, file)?;
        // SAFETY: the range was just mapped. Small pages make the steps of the scan visible.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_NOHUGEPAGE) };
        if let Some(mode) = self.policy {
            bind(start, length, mode)?;
        }
        let region = Region { start, length };
        if self.access == READ_WRITE {
            region.fill();
        }
        Ok(region)
    }
}

/// Maps memory. `start` is 0, or is with all the length in a mapping that no thread uses.
fn map_at(
    start: usize,
    length: usize,
    access: i32,
    flags: i32,
    file: Option<&File>,
) -> io::Result<usize> {
    let descriptor = file.map_or(-1, File::as_raw_fd);
    // SAFETY: a new mapping, or one in place of one that no thread uses.
    let found =
        unsafe { libc::mmap(start as *mut libc::c_void, length, access, flags, descriptor, 0) };
    if found == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(found as usize) }
}

fn bind(start: usize, length: usize, mode: i32) -> io::Result<()> {
    let node = NODE_0;
    // SAFETY: the range is ours and the mask is readable for its 64 bits.
    let result =
        unsafe { libc::syscall(libc::SYS_mbind, start, length, mode, &raw const node, 64, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Region {
    /// Reads a byte of each page that is in memory.
    pub(super) fn touch(&self) {
        for offset in (0..self.length).step_by(STRIDE) {
            // SAFETY: within the mapping, which can be read.
            unsafe { ptr::read_volatile((self.start + offset) as *const u8) };
        }
    }

    /// Writes a byte of the same pages, which gives each its own memory.
    fn fill(&self) {
        for offset in (0..self.length).step_by(STRIDE) {
            // SAFETY: within the mapping, which can be written.
            unsafe { ptr::write_volatile((self.start + offset) as *mut u8, 1) };
        }
    }

    pub(super) fn unmap(self) {
        // SAFETY: the range is ours, and the region is used no more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.length) };
    }
}

/// Binds the calling thread to a node, or leaves its pages to the kernel again.
pub(super) fn set_thread_policy(bound: bool) -> io::Result<()> {
    let node = NODE_0;
    let (mode, mask, bits) = match bound {
        true => (libc::MPOL_BIND, &raw const node, 64),
        false => (libc::MPOL_DEFAULT, ptr::null(), 0),
    };
    // SAFETY: the mask, if there is one, is readable for its 64 bits.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
