//! The number of objects that were cut from a slab. The slab's memory may only be freed if all of
//! them are idle.
//!
//! # Proof
//!
//! Cutting is an addition: every number is returned once, and those that fit the slab are objects.
//! A thread that holds as many idle objects as were cut *closes* the slab by an exchange of exactly
//! that count for [`CLOSED`]. If an object was cut in between, the count has changed and the
//! exchange fails. If it succeeds, all objects belong to the closing thread, and every addition
//! from then on finds the slab closed. The store that opens the slab again releases the thread's
//! changes to the memory, and an addition acquires.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// More objects than any slab has, whatever the number of threads that find it closed at the same
/// time.
const CLOSED: u32 = 1 << 30;

/// The count; above the number of objects that fit, no object can be cut.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) count: AtomicU32,
}

impl Cut {
    /// Returns the number of a new object, out of `fit`; `None` if none is left.
    pub(super) fn next(&self, fit: u32) -> Option<u32> {
        Some(self.count.fetch_add(1, Acquire)).filter(|&number| number < fit)
    }

    /// Closes the slab if the `idle` objects, which the caller holds, are all that were ever cut
    /// from it, out of `fit`. Returns the argument for [`open`](Cut::open), in case the caller must
    /// undo it.
    pub(super) fn close(&self, idle: u32, fit: u32) -> Option<u32> {
        let count = self.count.load(Relaxed);
        if idle != count.min(fit) {
            return None;
        }
        self.count.compare_exchange(count, CLOSED, Relaxed, Relaxed).ok()
    }

    /// Opens a slab that the caller has closed: `count` objects are cut.
    pub(super) fn open(&self, count: u32) {
        self.count.store(count, Release);
    }
}
