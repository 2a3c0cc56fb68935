//! How many objects were cut from a slab, and that it gives its memory back only if all are idle.
//!
//! # Proof
//!
//! Cutting is an addition: every number is handed out once, and those that fit the slab are objects.
//! A thread that holds as many idle objects as were cut *closes* the slab by an exchange of that
//! very count for [`CLOSED`]. If an object was cut in between, the count has changed and the
//! exchange fails. If it succeeds, all objects are the closing thread's, and every addition from
//! then on finds the slab closed. Its store that opens the slab again releases what it did to the
//! memory, and an addition acquires.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// More objects than any slab has, however many threads find it closed at the same time.
const CLOSED: u32 = 1 << 30;

/// The count; above the number of objects that fit, there is no more to cut.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) count: AtomicU32,
}

impl Cut {
    /// The number of a new object; `None` if there is none to be cut, of `fit`.
    pub(super) fn next(&self, fit: u32) -> Option<u32> {
        Some(self.count.fetch_add(1, Acquire)).filter(|&number| number < fit)
    }

    /// Closes the slab if `idle` objects, which the caller has, are all that were ever cut from it,
    /// of `fit`. What is returned is for [`open`](Cut::open), if nothing comes of it.
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
