//! The lock of visitors of the shards of all IDs of a structure: one visitor at a time.

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
    /// Waits until no other thread holds the lock, and takes it. Returns `None` if the calling
    /// thread holds it already, further up its stack. It does not wait for a holder that was a
    /// thread of the parent, at the time of a fork. Nor does it wait for the calling thread's own
    /// visit, if the thread has forked inside that and continues in the child.
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
                // Relaxed: the thread that takes the lock acquires, and that visitor's changes are
                // only in a copy.
                let _ = self.visitor.compare_exchange(visitor, 0, Relaxed, Relaxed);
            }
        }
    }
}

/// A guard of the lock, which is released when the guard is dropped.
#[derive(Debug)]
pub(crate) struct VisitGuard<'l> {
    lock: &'l VisitLock,
    own: u64,
}

impl Drop for VisitGuard<'_> {
    fn drop(&mut self) {
        race_detector::release(std::ptr::from_ref(self.lock).addr());
        // In a child that continues with a visit in which it was forked, another thread may hold
        // the lock by now.
        let _ = self.lock.visitor.compare_exchange(self.own, 0, Release, Relaxed);
    }
}
