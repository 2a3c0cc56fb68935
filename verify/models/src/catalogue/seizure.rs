//! Seizing a block.

use super::{Case, Size, System, case};
use crate::memory::Memory::{Fifo, Unordered};
use crate::seizure::{self, Flaw, INTRUDED, Seizure, TWICE, UNMARKED};

/// Seizing a block must not lose an item.
pub(super) fn sound() -> Vec<Case> {
    let [stack, moving_stack] = [Seizure::new(), Seizure::with_theft()];
    let two_ids = Seizure { ids: 2, items: 1, ..moving_stack };
    let x86 = |model| Seizure { memory: Fifo, ..model };
    let arm = |model| Seizure { memory: Unordered, ..model };
    let three = |model| Seizure { threads: 3, ..model };
    let named = |name, size, model, claim| case(name, size, System::Seizure(model), None, claim);
    vec![
        named("seizure/stack", Size::Quick, stack, "1 CPU, 2 threads, 2 drainers"),
        named("seizure/stack/x86", Size::Quick, x86(stack), "the same with a store buffer"),
        named("seizure/stack/arm", Size::Standard, arm(stack), "the same, stores in any order"),
        named("seizure/stack/three-threads", Size::Standard, three(stack), "3 threads"),
        named(
            "seizure/stack/theft",
            Size::Quick,
            moving_stack,
            "2 CPUs, the ID moves; 2 threads, 1 drainer",
        ),
        named(
            "seizure/stack/theft/x86",
            Size::Standard,
            x86(moving_stack),
            "the same with store buffers",
        ),
        named(
            "seizure/stack/theft/arm",
            Size::Standard,
            arm(moving_stack),
            "the same, stores in any order",
        ),
        named(
            "seizure/stack/theft/three-threads",
            Size::Standard,
            x86(three(moving_stack)),
            "3 threads, store buffers",
        ),
        named("seizure/stack/two-ids", Size::Standard, two_ids, "2 CPUs, 2 IDs that move"),
        named(
            "seizure/stack/two-ids/x86",
            Size::Standard,
            x86(two_ids),
            "the same with store buffers",
        ),
    ]
}

/// What a seizure does not survive.
pub(super) fn controls() -> Vec<Case> {
    let stack = Seizure::new();
    let with = |flaw, model| Seizure { flaw: Some(flaw), ..model };
    let items = |flaw, model| Seizure { items_only: true, ..with(flaw, model) };
    let theft = Seizure::with_theft();
    let named = |name, model, breaks, claim| {
        case(name, Size::Quick, System::Seizure(model), Some(breaks), claim)
    };
    vec![
        named(
            "seizure/stack/no-membarrier",
            with(Flaw::NoMembarrier, stack),
            INTRUDED,
            "without membarrier a section commits late",
        ),
        named(
            "seizure/stack/no-membarrier/items",
            items(Flaw::NoMembarrier, stack),
            seizure::LOST,
            "and an item is lost by that",
        ),
        named(
            "seizure/stack/plain-membarrier",
            with(Flaw::PlainMembarrier, stack),
            INTRUDED,
            "membarrier must abort sections",
        ),
        named(
            "seizure/stack/membarrier-first",
            with(Flaw::MembarrierFirst, stack),
            INTRUDED,
            "and after the word is marked",
        ),
        named(
            "seizure/stack/no-confirmation",
            with(Flaw::NoConfirmation, stack),
            UNMARKED,
            "a section may have committed over the mark",
        ),
        named(
            "seizure/stack/no-confirmation/items",
            items(Flaw::NoConfirmation, stack),
            seizure::LOST,
            "and an item is lost by that",
        ),
        named(
            "seizure/stack/plain-seizure",
            with(Flaw::PlainSeizure, stack),
            seizure::LOST,
            "the mark must not overwrite a commit",
        ),
        named(
            "seizure/stack/no-lock",
            with(Flaw::NoLock, stack),
            seizure::SHARED,
            "two drainers take each other's mark for their own",
        ),
        named(
            "seizure/stack/gives-up",
            with(Flaw::GivesUp, stack),
            seizure::OWED,
            "who lost his mark must begin again",
        ),
        named(
            "seizure/stack/release-first",
            with(Flaw::ReleaseFirst, stack),
            UNMARKED,
            "the bit is cleared before the word is released",
        ),
        named(
            "seizure/stack/mark-first",
            with(Flaw::MarkFirst, stack),
            UNMARKED,
            "and set after the word is owned",
        ),
        named(
            "seizure/stack/unprotected",
            with(Flaw::Unprotected, stack),
            seizure::SHARED,
            "an activation owns the word by a section",
        ),
        named(
            "seizure/stack/waits",
            with(Flaw::Waits, stack),
            seizure::SOLO,
            "who waits for a drainer waits for another thread",
        ),
        named(
            "seizure/stack/unfenced-theft",
            items(Flaw::UnfencedTheft, theft),
            TWICE,
            "an ID that moves without a fence",
        ),
    ]
}
