//! The lock of those who visit the shards of all IDs of a structure: one visitor at a time.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::backoff::Backoff;
use crate::sys::process;

/// The lock of a structure's visitors.
#[derive(Debug)]
pub(crate) struct VisitLock {
    /// The visitor's thread number; 0 if there is no visitor.
    visitor: AtomicU32,
}

impl VisitLock {
    pub(crate) const fn new() -> VisitLock {
        VisitLock { visitor: AtomicU32::new(0) }
    }

    /// Waits until no other thread holds the lock, and takes it. `None` if the calling thread holds
    /// it already, further up its stack. A holder that was another thread of the parent, at the
    /// time of a fork, is not waited for.
    pub(crate) fn lock(&self) -> Option<VisitGuard<'_>> {
        let me = process::thread_id();
        let mut backoff = Backoff::default();
        loop {
            let visitor = match self.visitor.compare_exchange(0, me, Acquire, Relaxed) {
                Ok(_) => return Some(VisitGuard(self)),
                Err(visitor) if visitor == me => return None,
                Err(visitor) => visitor,
            };
            backoff.wait();
            if backoff.is_sleeping() && !process::has_thread(visitor) {
                let _ = self.visitor.compare_exchange(visitor, 0, Acquire, Relaxed);
            }
        }
    }
}

/// The lock, held; released when dropped.
#[derive(Debug)]
pub(crate) struct VisitGuard<'l>(&'l VisitLock);

impl Drop for VisitGuard<'_> {
    fn drop(&mut self) {
        self.0.visitor.store(0, Release);
    }
}
