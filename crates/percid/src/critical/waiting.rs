//! A critical section that does nothing but wait for a flag, to see whether the kernel aborts it.
//!
//! It says on which CPU it is, from inside, and then looks at the flag until that shows its round's number. Its
//! descriptor lies in the caller's memory and not in the program's section of descriptors: it belongs to no
//! operation, and a test can spoil it.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Release},
};

#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
#[path = "wait_aarch64.rs"]
mod arch;
#[cfg(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "wait_portable.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
#[path = "wait_x86_64.rs"]
mod arch;

/// What the section and those who watch it share. All zero at first.
#[repr(C, align(32))]
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The descriptor's version and flags, both 0 (`struct rseq_cs` of `linux/rseq.h`).
    version_and_flags: u64,
    start: u64,
    length: u64,
    abort: u64,
    /// Written from inside: the CPU plus 1 in the upper half, the round in the lower.
    inside: AtomicU64,
    /// The last round whose flag was set.
    flag: AtomicU32,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The kernel aborted the section.
    Aborted,
    /// The flag was set, and the section saw it.
    SawFlag,
    /// Neither happened for so many looks.
    TimedOut,
}

/// No CPU has this number.
pub(crate) const NOWHERE: u32 = u32::MAX;

const ABORTED: u64 = 1;
const SAW_FLAG: u64 = 2;

impl Waiting {
    /// Waits inside a section for the flag of `round`, for at most `tries` looks, about a nanosecond each. With a
    /// `spoilt` descriptor the kernel takes it for no section at all.
    ///
    /// # Safety
    ///
    /// The calling thread's rseq area is registered and lies where [`FAST_PATH`](super::FAST_PATH) says.
    pub(crate) unsafe fn enter(&self, round: u32, tries: u64, spoilt: bool) -> Ending {
        let length_mask = if spoilt { 0 } else { u64::MAX };
        // SAFETY: by contract.
        match unsafe { arch::enter(self, round, length_mask, tries) } {
            ABORTED => Ending::Aborted,
            SAW_FLAG => Ending::SawFlag,
            _ => Ending::TimedOut,
        }
    }

    /// The CPU on which the section of `round` is or was; `None` before it has begun, [`NOWHERE`] if it was given up.
    pub(crate) fn cpu(&self, round: u32) -> Option<u32> {
        let inside = self.inside.load(Acquire);
        (inside as u32 == round).then(|| ((inside >> 32) as u32).wrapping_sub(1))
    }

    /// Says that the section of `round` was over before it could say where it was: its CPU is none that exists.
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
