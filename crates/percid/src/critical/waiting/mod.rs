//! A critical section that does nothing but wait for a flag, to see whether the kernel aborts it.
//!
//! It says on which CPU it is, from inside, and then looks at the flag until that shows its round's
//! number. Its descriptor lies in the caller's memory and not in the program's section of
//! descriptors: it belongs to no operation, and a test can spoil it.

#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
#[path = "aarch64.rs"]
mod arch;
#[cfg(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "portable.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
#[path = "x86_64.rs"]
mod arch;
mod rendezvous;

use rendezvous::{ABORTED, SAW_FLAG};
pub(crate) use rendezvous::{NOWHERE, Rendezvous};

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The kernel aborted the section.
    Aborted,
    /// The flag was set, and the section saw it.
    SawFlag,
    /// Neither happened for as many looks.
    TimedOut,
}

/// Waits inside a section for the flag of `round`, for at most `tries` looks, about a nanosecond
/// each. With a `spoilt` descriptor the kernel takes it for no section at all.
///
/// # Safety
///
/// The calling thread's rseq area is registered and lies where [`FAST_PATH`](super::FAST_PATH)
/// says.
pub(crate) unsafe fn enter(shared: &Rendezvous, round: u32, tries: u64, spoilt: bool) -> Ending {
    let length_mask = if spoilt { 0 } else { u64::MAX };
    // SAFETY: by contract.
    match unsafe { arch::enter(shared, round, length_mask, tries) } {
        ABORTED => Ending::Aborted,
        SAW_FLAG => Ending::SawFlag,
        _ => Ending::TimedOut,
    }
}
