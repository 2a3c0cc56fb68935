//! A lock for which no thread waits.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// The lock; all zero is free, so it may lie in memory that a fork wipes.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct TryLock {
    pub(crate) taken: AtomicU32,
}

impl TryLock {
    /// Takes the lock, or does nothing if another thread has it.
    pub(crate) fn try_lock(&self) -> Option<TryLockGuard<'_>> {
        self.taken.compare_exchange(0, 1, Acquire, Relaxed).ok()?;
        Some(TryLockGuard(self))
    }
}

/// A guard of the lock, which is released when the guard is dropped.
#[derive(Debug)]
pub(crate) struct TryLockGuard<'l>(&'l TryLock);

impl Drop for TryLockGuard<'_> {
    fn drop(&mut self) {
        self.0.taken.store(0, Release);
    }
}
