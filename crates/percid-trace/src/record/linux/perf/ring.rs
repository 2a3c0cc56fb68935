//! A ring that the kernel writes records into and this program reads them from.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

use perf_event_open_sys::bindings::perf_event_mmap_page;

/// An event and its ring.
#[derive(Debug)]
pub(super) struct Ring {
    event: OwnedFd,
    /// A page by which both sides communicate their positions, then the records.
    map: NonNull<u8>,
    page: usize,
    /// Bytes for records: a power of two.
    size: usize,
    /// A record whose bytes do not lie in one piece.
    copy: Vec<u8>,
}

/// Bytes of the part that all records begin with: kind, flags, length.
pub(super) const HEADER: usize = 8;

impl Ring {
    /// Maps the ring of an event, of `size` bytes or as many as are permitted.
    pub(super) fn new(event: OwnedFd, size: usize) -> io::Result<Ring> {
        // SAFETY: the call has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let mut size = size.max(page).next_power_of_two().min(1 << 30);
        loop {
            match map(event.as_fd(), page + size) {
                Ok(map) => return Ok(Ring { event, map, page, size, copy: Vec::new() }),
                Err(error) if size == page => return Err(error),
                Err(_) => size /= 2,
            }
        }
    }

    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn control(&self) -> *mut perf_event_mmap_page {
        self.map.as_ptr().cast()
    }

    /// Hands out every record that is there.
    pub(super) fn drain(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        // SAFETY: the page is mapped as long as `self` lives. The kernel writes the head, and only
        // this value the tail.
        let (head, mut tail) = unsafe {
            let control = self.control();
            ((&raw const (*control).data_head).read_volatile(), (*control).data_tail)
        };
        // Acquire: the records before the head are read only after the head. Pairs with the
        // kernel's release of `data_head`.
        fence(Ordering::Acquire);
        while tail != head {
            let there = head.wrapping_sub(tail) as usize;
            let length = self.length(tail);
            if !(HEADER..=there).contains(&length) || length > self.size {
                return Err(format!("a record of {length} bytes where {there} are"));
            }
            take(self.bytes(tail, length))?;
            tail = tail.wrapping_add(length as u64);
        }
        // Release: the kernel may overwrite the records only after they have been read.
        fence(Ordering::Release);
        // SAFETY: the page is mapped as long as `self` lives. Only this value writes the tail, and
        // `&mut self` excludes other writers.
        unsafe { (&raw mut (*self.control()).data_tail).write_volatile(tail) };
        Ok(())
    }

    /// The length of the record at a place. Records begin at multiples of eight bytes, so its
    /// header lies in one piece.
    fn length(&self, at: u64) -> usize {
        let place = self.page + (at as usize & (self.size - 1));
        // SAFETY: the place is within the mapping, and the kernel has finished writing there.
        let header: [u8; HEADER] =
            unsafe { ptr::read_unaligned(self.map.as_ptr().add(place).cast()) };
        usize::from(u16::from_ne_bytes([header[6], header[7]]))
    }

    fn bytes(&mut self, at: u64, length: usize) -> &[u8] {
        let at = at as usize & (self.size - 1);
        let first = length.min(self.size - at);
        // SAFETY: both parts are within the mapping, and the kernel writes there only after the
        // tail has moved.
        let (first, second) = unsafe {
            let records = self.map.as_ptr().add(self.page);
            let second = std::slice::from_raw_parts(records, length - first);
            (std::slice::from_raw_parts(records.add(at), first), second)
        };
        if second.is_empty() {
            return first;
        }
        self.copy.clear();
        self.copy.extend_from_slice(first);
        self.copy.extend_from_slice(second);
        &self.copy
    }
}

fn map(event: BorrowedFd<'_>, bytes: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel likes it.
    let map = unsafe {
        libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, event.as_raw_fd(), 0)
    };
    match NonNull::new(map.cast()) {
        Some(map) if map.as_ptr() != libc::MAP_FAILED.cast() => Ok(map),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is what was mapped, and nothing refers to it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.page + self.size) };
    }
}
