//! What a section that waits and those who watch it share.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Release},
};

/// What the section and those who watch it share. All zero at first.
#[repr(C, align(32))]
#[derive(Debug)]
pub(crate) struct Rendezvous {
    /// The descriptor's version and flags, both 0 (`struct rseq_cs` of `linux/rseq.h`).
    version_and_flags: u64,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) abort: u64,
    /// Written from inside: the CPU plus 1 in the upper half, the round in the lower.
    pub(super) inside: AtomicU64,
    /// The last round whose flag was set.
    pub(super) flag: AtomicU32,
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
        let inside = self.inside.load(Acquire);
        (inside as u32 == round).then(|| ((inside >> 32) as u32).wrapping_sub(1))
    }

    /// Says that the section of `round` was over before it could say where it was: its CPU is none
    /// that exists.
    pub(crate) fn give_up(&self, round: u32) {
        self.inside.store(u64::from(round), Release);
    }

    /// Sets the flag of `round`.
    pub(crate) fn set_flag(&self, round: u32) {
        self.flag.store(round, Release);
    }

    /// Whether the flag of `round` is set.
    pub(crate) fn is_flag_set(&self, round: u32) -> bool {
        self.flag.load(Acquire) == round
    }
}
