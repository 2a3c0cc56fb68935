//! How many idle objects of a slab are on no list: a bounded pool had no room for them.
//!
//! # Proof
//!
//! An object that is left is nobody's: it is not lent, not on a list, and is not used again before
//! the slab's memory has gone back. Leaving adds it to the number, and who takes the number away has
//! it and all the others: each is in the number, or one thread's. What the taker cannot use it adds
//! again. Adding releases what was done to the objects, and taking acquires it, so nothing is
//! written to memory that has gone back.
//!
//! Whoever adds the last object of a slab sees that it is the last, and no other thread is at it
//! then, unless a drain has taken some away for a moment. What that adds again waits for the next
//! drain, which takes from all slabs.
//!
//! Checked with every interleaving in `verify/loom`.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// All zero is none.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) number: AtomicU32,
}

impl Left {
    /// Leaves objects. Returns how many there are.
    pub(super) fn add(&self, objects: u32) -> u32 {
        self.number.fetch_add(objects, Release) + objects
    }

    /// Takes all of them.
    pub(super) fn take(&self) -> u32 {
        self.number.swap(0, Acquire)
    }
}
