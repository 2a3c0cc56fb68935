//! A request and its completion, between two processes that share memory.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// A number that others wait for: a futex in shared memory.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Bell {
    rung: AtomicU32,
}

impl Bell {
    /// Returns the number of times that the bell was rung.
    pub fn count(&self) -> u32 {
        self.rung.load(SeqCst)
    }

    /// Rings the bell: wakes all threads that wait.
    pub fn ring(&self) {
        self.rung.fetch_add(1, SeqCst);
        // SAFETY: the word is valid; waking takes no other pointer.
        unsafe { libc::syscall(libc::SYS_futex, &raw const self.rung, libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until it has been rung more than `seen` times, or for 100 ms.
    pub fn wait_beyond(&self, seen: u32) {
        if self.count() != seen {
            return;
        }
        let limit = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        // SAFETY: the word and the time are valid; an early return is allowed.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                &raw const self.rung,
                libc::FUTEX_WAIT,
                seen,
                &raw const limit,
                ptr::null::<u32>(),
                0,
            )
        };
    }
}
