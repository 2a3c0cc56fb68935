//! A critical section that only waits for a flag, to test whether the kernel aborts it.
//!
//! It publishes its CPU from inside, and then polls the flag until that contains its round's
//! number. Its descriptor lies in the caller's memory and not in the program's section of
//! descriptors: it belongs to no operation, and a test can make it invalid.

#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
#[path = "aarch64.rs"]
mod arch;
#[cfg(all(target_arch = "riscv64", not(percid_portable)))]
#[path = "riscv64.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
#[path = "x86_64.rs"]
mod arch;
#[allow(dead_code, reason = "only where there are no sections")]
mod portable;
mod rendezvous;

without_sections! {
    use portable as arch;
}

use rendezvous::{ABORTED, SAW_FLAG};
pub(crate) use rendezvous::{NOWHERE, Rendezvous};

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The kernel aborted the section.
    Aborted,
    /// The flag was set, and the section saw it.
    SawFlag,
    /// Neither happened during `tries` polls.
    TimedOut,
}

/// Waits inside a section for the flag of `round`, for at most `tries` polls, about a nanosecond
/// each. With a `spoilt` descriptor the kernel does not recognise the section.
///
/// # Safety
///
/// The calling thread's rseq area is registered and lies at [`FAST_PATH`](super::FAST_PATH)'s
/// offset.
pub(crate) unsafe fn enter(shared: &Rendezvous, round: u32, tries: u64, spoilt: bool) -> Ending {
    let length_mask = if spoilt { 0 } else { u64::MAX };
    // SAFETY: the caller guarantees that the area is registered and lies at that offset.
    match unsafe { arch::enter(shared, round, length_mask, tries) } {
        ABORTED => Ending::Aborted,
        SAW_FLAG => Ending::SawFlag,
        _ => Ending::TimedOut,
    }
}

#[cfg(all(test, not(percid_portable)))]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;
    use crate::critical::FAST_PATH;
    use crate::id::Source;
    use crate::sys::rseq::SIGNATURE;
    use crate::sys::thread;

    /// Returns the word of the calling thread's area that points to the descriptor of its section.
    fn descriptor_in_use() -> u64 {
        // SAFETY: the area is this thread's.
        unsafe { thread::at(FAST_PATH.area()).add(8).cast::<u64>().read_volatile() }
    }

    fn fresh() -> Rendezvous {
        // SAFETY: all zero is a valid value.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }

    #[test]
    fn a_section_says_where_it_is_and_sees_its_own_flag_only() {
        if Source::Table.prepare().is_err() {
            return;
        }
        let shared = fresh();
        let wait = |round, tries| {
            // SAFETY: the source is prepared. An abort is not a result: the section is retried.
            let again = || unsafe { enter(&shared, round, tries, false) };
            let ending = std::iter::repeat_with(again).find(|&ending| ending != Ending::Aborted);
            assert_eq!(descriptor_in_use(), 0, "the descriptor is not in use afterwards");
            ending.expect("an end")
        };
        assert_eq!(wait(7, 3), Ending::TimedOut);
        assert!(shared.cpu(7).is_some_and(|cpu| cpu < crate::sys::MAX_CPUS as u32));
        assert_eq!(shared.cpu(8), None);
        shared.set_flag(7, true);
        assert_eq!(wait(8, 3), Ending::TimedOut, "the flag of another round");
        shared.set_flag(8, true);
        assert_eq!(wait(8, 3), Ending::SawFlag);
        assert_eq!(wait(8, 1), Ending::SawFlag);
    }

    #[test]
    fn the_descriptor_covers_the_section_and_its_pad_is_signed() {
        if Source::Table.prepare().is_err() {
            return;
        }
        let shared = fresh();
        // SAFETY: the source is prepared.
        unsafe { enter(&shared, 1, 1, false) };
        assert_eq!(shared.version_and_flags, 0);
        assert!(shared.length > 0 && shared.abort.wrapping_sub(shared.start) >= shared.length);
        let signature: *const u32 = std::ptr::with_exposed_provenance(shared.abort as usize - 4);
        // SAFETY: the four bytes in front of the pad, which are in this program's code.
        assert_eq!(unsafe { signature.read_unaligned() }, SIGNATURE);
        // SAFETY: the source is prepared.
        unsafe { enter(&shared, 1, 1, true) };
        assert_eq!(shared.length, 0, "spoilt");
    }
}
