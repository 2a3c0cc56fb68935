//! Whether a slab is on the list of spares, so that it is never put there twice.
//!
//! The mark is set by whoever puts the slab on the list, and cleared by whoever has taken it from
//! there. No order is needed. A thread puts a slab there again only if it has read that the mark is
//! clear, and that is stored only if the slab has been taken: a store that depends on what was read
//! is carried out after the read. What lies in the slab is passed on by the list.

use crate::sys::atomic::{AtomicU32, Ordering::Relaxed};

/// All zero is not there.
#[derive(Debug)]
pub(super) struct SpareMark {
    pub(super) set: AtomicU32,
}

impl SpareMark {
    /// Sets the mark. Returns whether the caller puts the slab on the list: it was not there.
    pub(super) fn set(&self) -> bool {
        self.set.swap(1, Relaxed) == 0
    }

    /// Clears the mark of a slab that the caller has taken from the list.
    pub(super) fn clear(&self) {
        // A store would do; but loom does not order it with the exchanges.
        self.set.swap(0, Relaxed);
    }
}
