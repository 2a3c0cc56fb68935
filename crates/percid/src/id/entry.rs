//! An entry of the table: the ID of a CPU, or none.

use super::seen::Seen;
use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Relaxed, Release},
};

/// One more than the ID of the CPU, or 0 for UNSET. Critical sections read it; the owner of the
/// table's lock changes it.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Entry(pub(crate) AtomicU32);

impl Entry {
    /// Returns the ID.
    pub(crate) fn id(&self) -> Option<u32> {
        self.0.load(Relaxed).checked_sub(1)
    }

    /// Assigns an ID to the CPU, or returns it to the CPU. Release: a thread that reads it here
    /// sees that the ID was added to `seen`. So does every thread that observes an effect of that
    /// thread.
    pub(crate) fn set(&self, id: u32, seen: &Seen) {
        debug_assert!(id < seen.end(), "an ID that sums do not visit");
        self.0.store(id + 1, Release);
    }

    /// Removes the CPU's ID. Relaxed: no code may rely on it before the fence, which orders it.
    pub(crate) fn unset(&self) {
        self.0.store(0, Relaxed);
    }
}
