//! Functions that wait for a grace period, in a queue of limited length.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::detector;

/// A function that waits.
pub(super) type Deferred = Box<dyn FnOnce() + Send>;

/// The functions that wait.
pub(super) struct Queue {
    waiting: Mutex<Vec<Deferred>>,
    limit: usize,
}

impl Queue {
    pub(super) const fn new(limit: usize) -> Queue {
        Queue { waiting: Mutex::new(Vec::new()), limit }
    }

    /// Adds a function.
    ///
    /// # Errors
    ///
    /// The queue is full; the error has the function.
    pub(super) fn push(&self, function: Deferred) -> Result<(), Deferred> {
        let mut waiting = self.lock();
        if waiting.len() >= self.limit {
            return Err(function);
        }
        waiting.push(function);
        Ok(())
    }

    /// Takes all functions out.
    pub(super) fn take(&self) -> Vec<Deferred> {
        std::mem::take(&mut *self.lock())
    }

    /// Puts functions back that cannot run, also if the queue gets longer than its limit by that.
    pub(super) fn put_back(&self, functions: Vec<Deferred>) {
        self.lock().extend(functions);
    }

    pub(super) fn length(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> Locked<'_> {
        Locked::new(self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The exclusive use of a queue, which is announced to race detectors.
struct Locked<'q>(MutexGuard<'q, Vec<Deferred>>);

impl<'q> Locked<'q> {
    fn new(waiting: MutexGuard<'q, Vec<Deferred>>) -> Locked<'q> {
        let locked = Locked(waiting);
        detector::acquire(locked.key());
        locked
    }

    /// Returns an address of its own for each queue.
    fn key(&self) -> usize {
        std::ptr::from_ref(&*self.0).addr()
    }
}

impl Deref for Locked<'_> {
    type Target = Vec<Deferred>;

    fn deref(&self) -> &Vec<Deferred> {
        &self.0
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Vec<Deferred> {
        &mut self.0
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        detector::release(self.key());
    }
}
