//! The memory that a waiting section shares with its observers.

use crate::sys::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The memory that a waiting section shares with its observers. All zero at first.
#[repr(C, align(32))]
#[derive(Debug)]
pub(crate) struct Rendezvous {
    /// The descriptor's version and flags, both 0 (`struct rseq_cs` of `linux/rseq.h`).
    pub(super) version_and_flags: u64,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) abort: u64,
    /// Written from inside: the CPU plus 1 in the upper half, the round in the lower.
    pub(super) inside: AtomicU64,
    /// The last round whose flag was set.
    pub(super) flag: AtomicU32,
    /// The last round in which the action that the flag reports was not done.
    pub(super) failed: AtomicU32,
}

/// A number that no CPU has.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Return value of an aborted section.
pub(super) const ABORTED: u64 = 1;
/// Return value of a section that saw its flag.
pub(super) const SAW_FLAG: u64 = 2;

impl Rendezvous {
    /// Returns the CPU on which the section of `round` is or was; `None` before it has begun,
    /// [`NOWHERE`] if it was given up.
    pub(crate) fn cpu(&self, round: u32) -> Option<u32> {
        // Relaxed: the word does not refer to other memory, and its reader acts through the kernel.
        let inside = self.inside.load(Relaxed);
        (inside as u32 == round).then(|| ((inside >> 32) as u32).wrapping_sub(1))
    }

    /// Records that the section of `round` was over before it could publish its CPU: the CPU
    /// becomes [`NOWHERE`].
    pub(crate) fn give_up(&self, round: u32) {
        self.inside.store(u64::from(round), Relaxed);
    }

    /// Sets the flag of `round`; `done` is `true` if the action was done before.
    pub(crate) fn set_flag(&self, round: u32, done: bool) {
        if !done {
            self.failed.store(round, Relaxed);
        }
        // Release: who sees the flag sees the line above.
        self.flag.store(round, Release);
    }

    /// Returns `true` if the action before the flag of `round` was done; `None` before the flag is
    /// set.
    pub(crate) fn was_done(&self, round: u32) -> Option<bool> {
        let set = self.flag.load(Acquire) == round;
        set.then(|| self.failed.load(Relaxed) != round)
    }
}
