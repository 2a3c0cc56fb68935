//! The lock of those who visit the shards of all IDs of a structure: one visitor at a time.

use crate::backoff::Backoff;
use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::{holder, race_detector};

/// The lock of a structure's visitors.
#[derive(Debug)]
pub(crate) struct VisitLock {
    /// The visitor; 0 if there is none.
    pub(crate) visitor: AtomicU64,
}

impl VisitLock {
    /// Waits until no other thread holds the lock, and takes it. `None` if the calling thread holds
    /// it already, further up its stack. A holder that was a thread of the parent, at the time of a
    /// fork, is not waited for; nor is the calling thread's own visit, if it has forked inside that
    /// and goes on in the child.
    pub(crate) fn lock(&self) -> Option<VisitGuard<'_>> {
        let me = holder::me();
        let mut backoff = Backoff::default();
        loop {
            let visitor = match self.visitor.compare_exchange(0, me, Acquire, Relaxed) {
                Ok(_) => {
                    race_detector::acquire(std::ptr::from_ref(self).addr());
                    return Some(VisitGuard { lock: self, own: me });
                }
                Err(visitor) if visitor == me => return None,
                Err(visitor) => visitor,
            };
            backoff.wait();
            if backoff.is_sleeping() && !holder::exists(visitor) {
                // Relaxed: whoever takes the lock acquires, and what that visitor left is a copy.
                let _ = self.visitor.compare_exchange(visitor, 0, Relaxed, Relaxed);
            }
        }
    }
}

/// The lock, held; released when dropped.
#[derive(Debug)]
pub(crate) struct VisitGuard<'l> {
    lock: &'l VisitLock,
    own: u64,
}

impl Drop for VisitGuard<'_> {
    fn drop(&mut self) {
        race_detector::release(std::ptr::from_ref(self.lock).addr());
        // In a child, which goes on with a visit in which it was forked, it may be another's by now.
        let _ = self.lock.visitor.compare_exchange(self.own, 0, Release, Relaxed);
    }
}
