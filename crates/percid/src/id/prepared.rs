//! Whether something has been prepared.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// Nonzero once it has.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) done: AtomicU32,
}

impl Prepared {
    /// Prepares it unless that was done; several threads may do so at once. What `prepare` stored
    /// is seen by every thread that gets `Ok` (release and acquire).
    ///
    /// # Errors
    ///
    /// Those of `prepare`; the next call tries again.
    pub(crate) fn ensure<E>(&self, prepare: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.done.load(Acquire) == 0 {
            prepare()?;
            self.done.store(1, Release);
        }
        Ok(())
    }
}
