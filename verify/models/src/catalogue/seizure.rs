//! Seizing a block.

use super::{Case, Size, System, case};
use crate::memory::Memory::{Fifo, Unordered};
use crate::seizure::{self, Flaw, INTRUDED, Seizure, Stack, TWICE, UNMARKED};

/// Returns the cases in which seizing a block must not lose an item.
pub(super) fn sound() -> Vec<Case> {
    let [stack, moving_stack] = [Seizure::on_one_cpu(), Seizure::with_theft()];
    let two_ids = Seizure { ids: 2, protocol: Stack { items: 1 }, ..moving_stack };
    let x86 = |model| Seizure { memory: Fifo, ..model };
    let arm = |model| Seizure { memory: Unordered, ..model };
    let three = |model| Seizure { threads: 3, ..model };
    cases! { Seizure:
        "seizure/stack", Quick, stack, None, "1 CPU, 2 threads, 2 drainers";
        "seizure/stack/x86", Quick, x86(stack), None, "the same with a store buffer";
        "seizure/stack/arm", Standard, arm(stack), None, "the same, stores in any order";
        "seizure/stack/three-threads", Standard, three(stack), None, "3 threads";
        "seizure/stack/theft", Quick, moving_stack, None,
            "2 CPUs, the ID moves; 2 threads, 1 drainer";
        "seizure/stack/theft/x86", Standard, x86(moving_stack), None, "the same with store buffers";
        "seizure/stack/theft/arm", Standard, arm(moving_stack), None,
            "the same, stores in any order";
        "seizure/stack/theft/three-threads", Standard, x86(three(moving_stack)), None,
            "3 threads, store buffers";
        "seizure/stack/two-ids", Standard, two_ids, None, "2 CPUs, 2 IDs that move";
        "seizure/stack/two-ids/x86", Standard, x86(two_ids), None, "the same with store buffers";
    }
}

/// Returns the flaws that a seizure does not survive.
pub(super) fn controls() -> Vec<Case> {
    let stack = Seizure::on_one_cpu();
    let with = |flaw, model| Seizure { flaw: Some(flaw), ..model };
    let items = |flaw, model| Seizure { data_only: true, ..with(flaw, model) };
    let theft = Seizure::with_theft();
    cases! { Seizure:
        "seizure/stack/no-membarrier", Quick, with(Flaw::NoMembarrier, stack), Some(INTRUDED),
            "without membarrier a section commits late";
        "seizure/stack/no-membarrier/items", Quick, items(Flaw::NoMembarrier, stack),
            Some(seizure::LOST), "and an item is lost by that";
        "seizure/stack/plain-membarrier", Quick, with(Flaw::PlainMembarrier, stack), Some(INTRUDED),
            "membarrier must abort sections";
        "seizure/stack/membarrier-first", Quick, with(Flaw::MembarrierFirst, stack), Some(INTRUDED),
            "and after the word is marked";
        "seizure/stack/no-confirmation", Quick, with(Flaw::NoConfirmation, stack), Some(UNMARKED),
            "a section may have committed over the mark";
        "seizure/stack/no-confirmation/items", Quick, items(Flaw::NoConfirmation, stack),
            Some(seizure::LOST), "and an item is lost by that";
        "seizure/stack/plain-seizure", Quick, with(Flaw::PlainSeizure, stack), Some(seizure::LOST),
            "the mark must not overwrite a commit";
        "seizure/stack/no-lock", Quick, with(Flaw::NoLock, stack), Some(seizure::SHARED),
            "two drainers take each other's mark for their own";
        "seizure/stack/gives-up", Quick, with(Flaw::GivesUp, stack), Some(seizure::OWED),
            "who lost his mark must begin again";
        "seizure/stack/release-first", Quick, with(Flaw::ReleaseFirst, stack), Some(UNMARKED),
            "the bit is cleared before the word is released";
        "seizure/stack/mark-first", Quick, with(Flaw::MarkFirst, stack), Some(UNMARKED),
            "and set after the word is owned";
        "seizure/stack/unprotected", Quick, with(Flaw::Unprotected, stack), Some(seizure::SHARED),
            "an activation owns the word by a section";
        "seizure/stack/waits", Quick, with(Flaw::Waits, stack), Some(seizure::SOLO),
            "who waits for a drainer waits for another thread";
        "seizure/stack/unfenced-theft", Quick, items(Flaw::UnfencedTheft, theft), Some(TWICE),
            "an ID that moves without a fence";
    }
}
