//! Whether a slab is on the list of spares, so that it is never put there twice.
//!
//! The mark is set by whoever puts the slab on the list, and cleared by whoever has taken it from
//! there. Clearing releases and setting acquires: who takes the slab stores zero in the word that
//! links it, and who puts it there again, having read that the mark is clear, stores a link in the
//! same word. On Arm the zero could else come last, and all spares behind the slab be lost.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// All zero is not there.
#[derive(Debug)]
pub(super) struct SpareMark {
    pub(super) set: AtomicU32,
}

impl SpareMark {
    /// Sets the mark. Returns whether the caller puts the slab on the list: it was not there.
    pub(super) fn set(&self) -> bool {
        self.set.swap(1, Acquire) == 0
    }

    /// Clears the mark of a slab that the caller has taken from the list.
    pub(super) fn clear(&self) {
        // A store would do; but loom does not order it with the exchanges.
        self.set.swap(0, Release);
    }
}
