//! Regions of every kind, and snapshots of all regions of the process.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::ptr;

/// Chunks of a scan end at multiples of this.
pub(crate) const HUGE: usize = 2 << 20;
/// Distance of pages with memory in bytes: few faults are enough.
const STRIDE: usize = 256 << 10;

/// A policy of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Bound to a node.
    Fixed,
    /// Bound to a node, and yet pages may move when they are used.
    Balancing,
}

/// A region of the script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    start: usize,
    length: usize,
    pub(crate) policy: Option<Policy>,
}

/// The kind of a mapping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// In chunks of a scan.
    pub(crate) chunks: usize,
    pub(crate) access: i32,
    pub(crate) flags: i32,
    pub(crate) policy: Option<Policy>,
}

impl Kind {
    pub(crate) const PRIVATE: Kind = Kind {
        chunks: 2,
        access: libc::PROT_READ | libc::PROT_WRITE,
        flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        policy: None,
    };

    /// Maps it, at a multiple of a chunk, between guards that keep it from being merged with
    /// others.
    pub(crate) fn map(self, file: Option<&File>) -> io::Result<Region> {
        let length = self.chunks * HUGE;
        let guard = Kind::PRIVATE.flags | libc::MAP_NORESERVE;
        let room = map_at(0, length + 2 * HUGE, libc::PROT_NONE, guard, None)?;
        let start = (room + 1).next_multiple_of(HUGE);
        map_at(start, length, self.access, self.flags | libc::MAP_FIXED, file)?;
        // SAFETY: the range was just mapped. Small pages make the scan's steps visible; if this is
        // not possible, as for huge pages of their own file system, nothing is visible anyway.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_NOHUGEPAGE) };
        let region = Region { start, length, policy: self.policy };
        region.bind()?;
        Ok(region)
    }
}

/// Maps memory. `start` is 0, or is with all the length in a mapping of this program that no thread
/// uses.
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

/// Not yet in the C library's headers for Rust.
const MPOL_F_NUMA_BALANCING: i32 = 1 << 13;
static NODE_0: u64 = 1;

impl Region {
    fn bind(&self) -> io::Result<()> {
        let mode = match self.policy {
            None => return Ok(()),
            Some(Policy::Fixed) => libc::MPOL_BIND,
            Some(Policy::Balancing) => libc::MPOL_BIND | MPOL_F_NUMA_BALANCING,
        };
        // SAFETY: the range is ours and the mask is readable for its 64 bits.
        let result = unsafe {
            libc::syscall(libc::SYS_mbind, self.start, self.length, mode, &raw const NODE_0, 64, 0)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Reads a byte of each page that has memory, or will have.
    pub(crate) fn touch(&self) {
        for offset in (0..self.length).step_by(STRIDE) {
            // SAFETY: within the mapping, which can be read.
            unsafe { ptr::read_volatile((self.start + offset) as *const u8) };
        }
    }

    /// Writes a byte of the same pages, which gives each its own memory.
    pub(crate) fn fill(&self) {
        for offset in (0..self.length).step_by(STRIDE) {
            // SAFETY: within the mapping, which the caller mapped writable.
            unsafe { ptr::write_volatile((self.start + offset) as *mut u8, 1) };
        }
    }

    pub(crate) fn unmap(self) {
        // SAFETY: the range is ours, and the region is used no more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.length) };
    }
}

/// Sets the calling thread's policy: bound to a node, or the default.
pub(crate) fn set_thread_policy(fixed: bool) -> io::Result<()> {
    let mode = if fixed { libc::MPOL_BIND } else { libc::MPOL_DEFAULT };
    let (mask, bits) = if fixed { (&raw const NODE_0, 64) } else { (ptr::null(), 0) };
    // SAFETY: the mask, if there is one, is readable for its 64 bits.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// All regions of the process at a moment.
pub(crate) struct Snapshot {
    text: Vec<u8>,
    own: Vec<Region>,
}

impl Snapshot {
    /// Makes a snapshot with space for one, allocated beforehand: allocations while the script runs
    /// change the regions.
    pub(crate) fn new() -> Snapshot {
        let mut text = vec![1; 64 << 10];
        text.clear();
        Snapshot { text, own: Vec::with_capacity(32) }
    }

    pub(crate) fn take(&mut self, own: impl Iterator<Item = Region>) -> io::Result<()> {
        self.own.extend(own);
        let mut file = File::open("/proc/self/smaps")?;
        let mut buffer = [0; 4096];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                read => self.text.extend_from_slice(&buffer[..read]),
            }
        }
    }

    /// Its lines in the recording.
    pub(crate) fn lines(&self, number: usize) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let (mut lines, mut range, mut file) = (String::new(), None, false);
        for line in text.lines() {
            if let Some(flags) = line.strip_prefix("VmFlags: ") {
                if let Some((start, end)) = range.take() {
                    let flags = flags.split_whitespace().collect::<Vec<_>>().join(",");
                    let file = if file { " file" } else { "" };
                    let policy = self.policy(start);
                    lines +=
                        &format!("region {number:x} {start:x} {end:x} {flags}{file}{policy}\n");
                }
            } else if let Some((head, inode)) = head(line) {
                (range, file) = (head, inode != "0");
            }
        }
        lines
    }

    fn policy(&self, start: usize) -> &'static str {
        let own = self.own.iter().find(|region| region.start == start);
        match own.and_then(|region| region.policy) {
            None => "",
            Some(Policy::Fixed) => " fixed",
            Some(Policy::Balancing) => " balancing",
        }
    }
}

type Range = (usize, usize);

/// Returns the range and the inode of a region's first line. No range for mappings that are not
/// memory of the process.
fn head(line: &str) -> Option<(Option<Range>, &str)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let inode = words.nth(3)?;
    Some(((start <= isize::MAX as usize).then_some((start, end)), inode))
}
