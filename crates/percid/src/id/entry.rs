//! An entry of the table: the ID of a CPU, or none.

use super::seen::Seen;
use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Relaxed, Release},
};

/// One more than the ID of the CPU, or 0 for UNSET. Critical sections read it; the holder of the
/// table's lock changes it.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Entry(pub(crate) AtomicU32);

impl Entry {
    /// The ID.
    pub(crate) fn id(&self) -> Option<u32> {
        self.0.load(Relaxed).checked_sub(1)
    }

    /// Gives an ID to the CPU, or gives it back. Release: a thread that finds it here, and those
    /// that know of what that thread does, see that the ID was added to `seen`.
    pub(crate) fn set(&self, id: u32, seen: &Seen) {
        debug_assert!(id < seen.end(), "an ID that sums do not visit");
        self.0.store(id + 1, Release);
    }

    /// Takes the CPU's ID. Relaxed: nothing may rely on it before the fence, and that orders it.
    pub(crate) fn unset(&self) {
        self.0.store(0, Relaxed);
    }
}
