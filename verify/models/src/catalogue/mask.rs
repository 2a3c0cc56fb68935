//! The active mask.

use super::{Case, Size, System, case};
use crate::mask::{self, Draining, FORGOTTEN, Marking, Mask};
use crate::memory::Memory::{Sequential, Unordered};

/// Returns the cases in which the active mask must never lose a member.
pub(super) fn sound() -> Vec<Case> {
    let new = Mask::new();
    let one = Mask { drainers: 1, ..new };
    let arm = |mask| Mask { memory: Unordered, ..mask };
    let fences = Mask { marking: Marking::Fenced, draining: Draining::Fenced, ..new };
    let no_barrier = |mask| Mask { draining: Draining::NoBarrier, ..mask };
    cases! { Mask:
        "mask", Quick, new, None, "x86-64: 2 markers, 2 drainers, 1 ID";
        "mask/two-ids", Quick, Mask { ids: 2, ..one }, None, "2 IDs in one word, 1 drainer";
        "mask/two-words", Standard, Mask { ids: 2, words: 2, ..one }, None,
            "2 IDs in two words, 1 drainer";
        "mask/two-ids/two-drainers", Full, Mask { ids: 2, ..new }, None,
            "2 IDs in one word, 2 drainers";
        "mask/three-markers", Quick, Mask { markers: 3, ..one }, None, "3 markers, 1 drainer, 1 ID";
        "mask/three-markers/two-drainers", Full, Mask { markers: 3, ..new }, None,
            "3 markers, 2 drainers, 1 ID";
        "mask/arm", Quick, arm(one), None, "Arm: 2 markers, 1 drainer, 1 ID";
        "mask/arm/two-drainers", Standard, arm(new), None, "Arm: 2 markers, 2 drainers";
        "mask/arm/three-markers", Standard, arm(Mask { markers: 3, ..one }), None,
            "Arm: 3 markers, 1 drainer";
        "mask/arm/two-ids", Full, arm(Mask { ids: 2, ..one }), None,
            "Arm: 2 IDs in one word, 1 drainer";
        "mask/fences", Quick, fences, None, "x86-64 without membarrier: fences on both sides";
        "mask/fences/arm", Quick, arm(fences), None, "Arm without membarrier: the same";
        "mask/fences/marker-only", Quick, no_barrier(fences), None,
            "on x86-64 the drainer's swap is its fence";
        "mask/no-barrier/sequential", Quick, Mask { memory: Sequential, ..no_barrier(new) }, None,
            "nothing but the memory asks for a barrier";
    }
}

/// Returns the flaws that the mask does not survive.
pub(super) fn controls() -> Vec<Case> {
    let new = Mask::new();
    let two_ids = Mask { ids: 2, drainers: 1, ..new };
    let marking = |mask, marking| Mask { marking, ..mask };
    let draining = |mask, draining| Mask { draining, ..mask };
    let marker_only =
        Mask { marking: Marking::Fenced, memory: Unordered, ..draining(new, Draining::NoBarrier) };
    let one_word = Mask { words: 2, ..draining(two_ids, Draining::OneWord) };
    cases! { Mask:
        "mask/no-membarrier", Quick, draining(new, Draining::Fenced), Some(FORGOTTEN),
            "a fence of the drainer's own is not enough";
        "mask/membarrier-first", Quick, draining(new, Draining::BarrierFirst), Some(FORGOTTEN),
            "nor is membarrier before the bits are taken";
        "mask/visit-first", Quick, draining(new, Draining::VisitFirst), Some(FORGOTTEN),
            "visits come after the bits are cleared";
        "mask/test-first", Quick, marking(new, Marking::TestFirst), Some(FORGOTTEN),
            "the test comes after the publication";
        "mask/torn-take", Quick, draining(two_ids, Draining::TornTake), Some(FORGOTTEN),
            "bits are taken by one atomic step";
        "mask/torn-set", Quick, marking(two_ids, Marking::TornSet), Some(FORGOTTEN),
            "a bit is set by one atomic step";
        "mask/one-word", Quick, one_word, Some(mask::OWED), "a drain takes all words";
        "mask/fences/marker-only/arm", Quick, marker_only, Some(FORGOTTEN),
            "on Arm the drainer needs a fence, too";
    }
}
