//! The lock of those who visit the shards of all IDs of a structure: one visitor at a time.

use crate::backoff::Backoff;
use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::holder;

/// The lock of a structure's visitors.
#[derive(Debug)]
pub(crate) struct VisitLock {
    /// The visitor; 0 if there is none.
    pub(crate) visitor: AtomicU64,
}

impl VisitLock {
    /// Waits until no other thread holds the lock, and takes it. `None` if the calling thread holds
    /// it already, further up its stack. A holder that was a thread of the parent, at the time of a
    /// fork, is not waited for.
    pub(crate) fn lock(&self) -> Option<VisitGuard<'_>> {
        let me = holder::me();
        let mut backoff = Backoff::default();
        loop {
            let visitor = match self.visitor.compare_exchange(0, me, Acquire, Relaxed) {
                Ok(_) => return Some(VisitGuard(self)),
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
pub(crate) struct VisitGuard<'l>(&'l VisitLock);

impl Drop for VisitGuard<'_> {
    fn drop(&mut self) {
        self.0.visitor.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_waited_for_while_the_visitor_lives_and_not_longer() {
        let lock = VisitLock { visitor: AtomicU64::new(0) };
        let visit = lock.lock();
        assert!(visit.is_some() && lock.lock().is_none(), "by this thread, further up its stack");
        drop(visit);
        // A visitor that ended, or that is a thread of the parent: both have no such thread here.
        for gone in [holder::me() & !0xffff_ffff | 1 << 23, holder::me() ^ 1 << 63] {
            lock.visitor.store(gone, Relaxed);
            assert!(lock.lock().is_some(), "{gone:x}");
        }
    }
}
