//! Functions that wait for a grace period, in a queue of limited length.

use std::sync::{Mutex, PoisonError};

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
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.limit {
            return Err(function);
        }
        waiting.push(function);
        Ok(())
    }

    /// Takes all functions out.
    pub(super) fn take(&self) -> Vec<Deferred> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts functions back that cannot run, also if the queue gets longer than its limit by that.
    pub(super) fn put_back(&self, functions: Vec<Deferred>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).extend(functions);
    }

    pub(super) fn length(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
