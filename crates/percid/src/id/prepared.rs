//! A flag for a preparation that is done once.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// The flag; nonzero once the preparation is done.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) done: AtomicU32,
}

impl Prepared {
    /// Prepares unless that was done; several threads may do so at once. Every thread that gets
    /// `Ok` sees the stores of `prepare` (release and acquire).
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
