//! How many IDs of a source were ever used: sums and drains visit those.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// One more than the largest ID that was admitted; it never falls.
///
/// An ID is added after its memory has been opened and before any thread can use it. So whoever
/// sees it here finds its memory open (release and acquire), and whoever knows of an update of its
/// memory sees it here: by the entry of the table that led there, which is stored later, with
/// release.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) end: AtomicU32,
}

impl Seen {
    /// Adds an ID.
    pub(crate) fn add(&self, id: u32) {
        self.end.fetch_max(id + 1, Release);
    }

    /// One more than the largest ID.
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Acquire)
    }
}
