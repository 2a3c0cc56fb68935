//! A mark of slabs on the list of spares, so that no slab is added twice.
//!
//! The thread that adds the slab to the list sets the mark, and the thread that has taken it from
//! the list clears it. Clearing releases and setting acquires. The thread that takes the slab
//! stores zero in the slab's link word. The thread that adds it again has read that the mark is
//! clear, and stores a link in the same word. On Arm the zero could otherwise come last, and all
//! spares behind the slab would be lost.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// The mark; 0 if the slab is not on the list.
#[derive(Debug)]
pub(super) struct SpareMark {
    pub(super) set: AtomicU32,
}

impl SpareMark {
    /// Sets the mark. Returns `true` if it was not set: then the caller adds the slab to the list.
    pub(super) fn set(&self) -> bool {
        self.set.swap(1, Acquire) == 0
    }

    /// Clears the mark of a slab that the caller has taken from the list.
    pub(super) fn clear(&self) {
        // A store would suffice; but loom does not order it with the exchanges.
        self.set.swap(0, Release);
    }
}
