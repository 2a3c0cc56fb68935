//! What a section that waits and those who watch it share.

use crate::sys::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// What the section and those who watch it share. All zero at first.
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
    /// The last round in which what the flag stands for was not done.
    pub(super) failed: AtomicU32,
}

/// No CPU has this number.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// What a section returns that was aborted.
pub(super) const ABORTED: u64 = 1;
/// What a section returns that saw its flag.
pub(super) const SAW_FLAG: u64 = 2;

impl Rendezvous {
    /// The CPU on which the section of `round` is or was; `None` before it has begun, [`NOWHERE`]
    /// if it was given up.
    pub(crate) fn cpu(&self, round: u32) -> Option<u32> {
        // Relaxed: the word says all, and whoever acts on it asks the kernel to.
        let inside = self.inside.load(Relaxed);
        (inside as u32 == round).then(|| ((inside >> 32) as u32).wrapping_sub(1))
    }

    /// Says that the section of `round` was over before it could say where it was: its CPU is none
    /// that exists.
    pub(crate) fn give_up(&self, round: u32) {
        self.inside.store(u64::from(round), Relaxed);
    }

    /// Sets the flag of `round`; `done` says whether what it stands for was done before.
    pub(crate) fn set_flag(&self, round: u32, done: bool) {
        if !done {
            self.failed.store(round, Relaxed);
        }
        // Release: who sees the flag sees the line above.
        self.flag.store(round, Release);
    }

    /// Whether what the flag of `round` stands for was done; `None` before it is set.
    pub(crate) fn was_done(&self, round: u32) -> Option<bool> {
        let set = self.flag.load(Acquire) == round;
        set.then(|| self.failed.load(Relaxed) != round)
    }
}
