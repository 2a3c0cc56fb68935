//! The number of IDs of a source ever used: sums and drains visit those.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// One more than the largest ID that was admitted; it never decreases.
///
/// An ID is added after its memory has been opened and before any thread can use it. So a thread
/// that reads it here finds its memory open (release and acquire). A thread that has observed an
/// update of that memory reads it here: the table entry that led to the update is stored later,
/// with release.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) end: AtomicU32,
}

impl Seen {
    /// Adds an ID.
    pub(crate) fn add(&self, id: u32) {
        self.end.fetch_max(id + 1, Release);
    }

    /// Returns one more than the largest ID.
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Acquire)
    }
}
