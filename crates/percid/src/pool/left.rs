//! The number of idle objects of a slab that are on no list because a bounded pool had no room for
//! them.
//!
//! # Proof
//!
//! An object that is left has no owner: it is not lent, not on a list, and is not used again before
//! the slab's memory has been freed. Leaving adds it to the number, and the thread that takes the
//! number has it and all the others. So each object is either in the number or belongs to one
//! thread. That thread adds the objects again that it cannot use. Adding releases the changes to
//! the objects, and taking acquires them, so nothing is written to memory that has been freed.
//!
//! The thread that adds the last object of a slab sees that it is the last. No other thread is
//! using the number then, unless a drain has temporarily taken some objects. If the drain adds them
//! again, they wait for the next drain, which takes from all slabs.
//!
//! Checked with every interleaving in `verify/loom`.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// The number; 0 if there are none.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) number: AtomicU32,
}

impl Left {
    /// Leaves objects. Returns the new number.
    pub(super) fn add(&self, objects: u32) -> u32 {
        self.number.fetch_add(objects, Release) + objects
    }

    /// Takes all of them.
    pub(super) fn take(&self) -> u32 {
        self.number.swap(0, Acquire)
    }
}
