//! The active mask.

use super::{Case, Size, System, case};
use crate::mask::{self, Draining, FORGOTTEN, Marking, Mask};
use crate::memory::Memory::{Sequential, Unordered};

/// The active mask must never lose a member.
pub(super) fn sound() -> Vec<Case> {
    let new = Mask::new();
    let one = Mask { drainers: 1, ..new };
    let arm = |mask| Mask { memory: Unordered, ..mask };
    let fences = Mask { marking: Marking::Fenced, draining: Draining::Fenced, ..new };
    let no_barrier = |mask| Mask { draining: Draining::NoBarrier, ..mask };
    let named = |name, size, mask, claim| case(name, size, System::Mask(mask), None, claim);
    vec![
        named("mask", Size::Quick, new, "x86-64: 2 markers, 2 drainers, 1 ID"),
        named("mask/two-ids", Size::Quick, Mask { ids: 2, ..one }, "2 IDs in one word, 1 drainer"),
        named(
            "mask/two-words",
            Size::Standard,
            Mask { ids: 2, words: 2, ..one },
            "2 IDs in two words, 1 drainer",
        ),
        named(
            "mask/two-ids/two-drainers",
            Size::Full,
            Mask { ids: 2, ..new },
            "2 IDs in one word, 2 drainers",
        ),
        named(
            "mask/three-markers",
            Size::Quick,
            Mask { markers: 3, ..one },
            "3 markers, 1 drainer, 1 ID",
        ),
        named(
            "mask/three-markers/two-drainers",
            Size::Full,
            Mask { markers: 3, ..new },
            "3 markers, 2 drainers, 1 ID",
        ),
        named("mask/arm", Size::Quick, arm(one), "Arm: 2 markers, 1 drainer, 1 ID"),
        named("mask/arm/two-drainers", Size::Standard, arm(new), "Arm: 2 markers, 2 drainers"),
        named(
            "mask/arm/three-markers",
            Size::Standard,
            arm(Mask { markers: 3, ..one }),
            "Arm: 3 markers, 1 drainer",
        ),
        named(
            "mask/arm/two-ids",
            Size::Full,
            arm(Mask { ids: 2, ..one }),
            "Arm: 2 IDs in one word, 1 drainer",
        ),
        named(
            "mask/fences",
            Size::Quick,
            fences,
            "x86-64 without membarrier: fences on both sides",
        ),
        named("mask/fences/arm", Size::Quick, arm(fences), "Arm without membarrier: the same"),
        named(
            "mask/fences/marker-only",
            Size::Quick,
            no_barrier(fences),
            "on x86-64 the drainer's swap is its fence",
        ),
        named(
            "mask/no-barrier/sequential",
            Size::Quick,
            Mask { memory: Sequential, ..no_barrier(new) },
            "nothing but the memory asks for a barrier",
        ),
    ]
}

/// What the mask does not survive.
pub(super) fn controls() -> Vec<Case> {
    let new = Mask::new();
    let two_ids = Mask { ids: 2, drainers: 1, ..new };
    let marking = |mask, marking| Mask { marking, ..mask };
    let draining = |mask, draining| Mask { draining, ..mask };
    let marker_only =
        Mask { marking: Marking::Fenced, memory: Unordered, ..draining(new, Draining::NoBarrier) };
    let one_word = Mask { words: 2, ..draining(two_ids, Draining::OneWord) };
    let named = |name, mask, breaks, claim| {
        case(name, Size::Quick, System::Mask(mask), Some(breaks), claim)
    };
    vec![
        named(
            "mask/no-membarrier",
            draining(new, Draining::Fenced),
            FORGOTTEN,
            "a fence of the drainer's own is not enough",
        ),
        named(
            "mask/membarrier-first",
            draining(new, Draining::BarrierFirst),
            FORGOTTEN,
            "nor is membarrier before the bits are taken",
        ),
        named(
            "mask/visit-first",
            draining(new, Draining::VisitFirst),
            FORGOTTEN,
            "visits come after the bits are cleared",
        ),
        named(
            "mask/test-first",
            marking(new, Marking::TestFirst),
            FORGOTTEN,
            "the test comes after the publication",
        ),
        named(
            "mask/torn-take",
            draining(two_ids, Draining::TornTake),
            FORGOTTEN,
            "bits are taken by one atomic step",
        ),
        named(
            "mask/torn-set",
            marking(two_ids, Marking::TornSet),
            FORGOTTEN,
            "a bit is set by one atomic step",
        ),
        named("mask/one-word", one_word, mask::OWED, "a drain takes all words"),
        named(
            "mask/fences/marker-only/arm",
            marker_only,
            FORGOTTEN,
            "on Arm the drainer needs a fence, too",
        ),
    ]
}
