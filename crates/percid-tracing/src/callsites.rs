//! The numbers of callsites. The static data of an event or span is stored once, and records refer
//! to it by number.
//!
//! Some callsites are not registered before their first event (for example those of `tracing-log`).
//! So a number is looked up by the address of the metadata, and assigned if there is none. A slot
//! is written once. A lookup is a load and a comparison, without a lock. If all probed slots of a
//! segment are taken, the next segment is used, which is twice as large.

use std::sync::OnceLock;

use tracing_core::Metadata;

type Slot = OnceLock<&'static Metadata<'static>>;

/// Number of slots of the first segment.
const FIRST_SEGMENT_SLOTS: usize = 1024;
/// Number of segments: four million slots in all.
const SEGMENTS: usize = 12;
/// Number of slots of a segment that are probed.
const PROBES: usize = 8;

/// The number for a missing callsite.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Callsites {
    segments: [OnceLock<Box<[Slot]>>; SEGMENTS],
}

impl Callsites {
    pub(crate) fn new() -> Callsites {
        let callsites = Callsites { segments: [const { OnceLock::new() }; SEGMENTS] };
        callsites.segment(0);
        callsites
    }

    /// Returns the number of a callsite. Returns [`NONE`] if all probed slots are taken: its
    /// records are then counted as damaged.
    pub(crate) fn number(&self, metadata: &'static Metadata<'static>) -> u32 {
        let hash = hash(metadata);
        for index in 0..SEGMENTS {
            // #[gamma::skip(expr, reason = "any hash does")]
            let slot = slot_of(self.segment(index), hash, metadata);
            if let Some(slot) = slot {
                return (base(index) + slot) as u32;
            }
        }
        NONE
    }

    /// Returns the callsite with this number.
    pub(crate) fn get(&self, number: u32) -> Option<&'static Metadata<'static>> {
        let number = number as usize;
        let index = (number / FIRST_SEGMENT_SLOTS + 1).ilog2() as usize;
        let segment = self.segments.get(index)?.get()?;
        segment[number - base(index)].get().copied()
    }

    fn segment(&self, index: usize) -> &[Slot] {
        self.segments[index].get_or_init(|| {
            let slots = std::iter::repeat_with(OnceLock::new);
            slots.take(FIRST_SEGMENT_SLOTS << index).collect()
        })
    }
}

/// Returns the number of the first slot of a segment.
fn base(segment: usize) -> usize {
    FIRST_SEGMENT_SLOTS * ((1 << segment) - 1)
}

/// Returns the callsite's slot in a segment, or `None` if other callsites have all probed slots.
fn slot_of(segment: &[Slot], hash: usize, metadata: &'static Metadata<'static>) -> Option<usize> {
    let slots = (0..PROBES).map(|probe| (hash + probe) & (segment.len() - 1));
    slots.into_iter().find(|&slot| {
        let there = segment[slot].get_or_init(|| metadata);
        std::ptr::eq(*there, metadata)
    })
}

// #[gamma::skip(expr, literal, reason = "any hash does that spreads addresses")]
fn hash(metadata: &'static Metadata<'static>) -> usize {
    let address = std::ptr::from_ref(metadata).addr() as u64;
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use tracing_core::{Callsite, Interest, Kind, Level, metadata};

    use super::*;

    struct Nowhere;

    static NOWHERE: Nowhere = Nowhere;

    impl Callsite for Nowhere {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            unreachable!("nobody asks a callsite that was not registered")
        }
    }

    fn leaked() -> &'static Metadata<'static> {
        let metadata = metadata! {
            name: "leaked",
            target: "callsites",
            level: Level::INFO,
            fields: &[],
            callsite: &NOWHERE,
            kind: Kind::EVENT,
        };
        Box::leak(Box::new(metadata))
    }

    #[test]
    fn a_callsite_keeps_its_number_also_when_segments_are_full() {
        let callsites = Callsites::new();
        let all: Vec<_> = (0..3 * FIRST_SEGMENT_SLOTS).map(|_| leaked()).collect();
        let numbers: Vec<_> = all.iter().map(|metadata| callsites.number(metadata)).collect();
        for (metadata, number) in all.iter().zip(&numbers) {
            assert_eq!(callsites.number(metadata), *number);
            let found = callsites.get(*number).expect("a number that was given");
            assert!(std::ptr::eq(*metadata, found));
        }
        assert!(
            numbers.iter().any(|&number| number as usize >= FIRST_SEGMENT_SLOTS),
            "one segment was enough"
        );
        assert!((numbers[0] as usize) < FIRST_SEGMENT_SLOTS, "the first segment is used");
    }

    #[test]
    fn callsites_of_one_place_have_eight_slots_round_the_end_of_a_segment() {
        let segment: Vec<Slot> = std::iter::repeat_with(OnceLock::new).take(16).collect();
        let slots = [(); 9].map(|()| slot_of(&segment, 30, leaked()));
        assert_eq!(
            slots,
            [14, 15, 0, 1, 2, 3, 4, 5, 16].map(|slot| Some(slot).filter(|it| *it < 16))
        );
    }

    #[test]
    fn without_a_slot_there_is_no_number() {
        let (callsites, one, other) = (Callsites::new(), leaked(), leaked());
        for segment in (0..SEGMENTS).map(|index| callsites.segment(index)) {
            for probe in 0..PROBES {
                segment[(hash(one) + probe) & (segment.len() - 1)].get_or_init(|| other);
            }
        }
        assert_eq!(callsites.number(one), NONE);
        let last = base(SEGMENTS) as u32;
        assert!(
            (last - 1..=last + 1).chain([NONE - 1]).all(|number| callsites.get(number).is_none())
        );
    }

    #[test]
    fn numbers_that_were_not_given_have_no_callsite() {
        let callsites = Callsites::new();
        assert!(callsites.segments[0].get().is_some(), "the first callsite allocates nothing");
        let number = callsites.number(leaked());
        let others = (0..3 * FIRST_SEGMENT_SLOTS as u32).filter(|other| *other != number);
        assert!(others.chain([NONE, NONE - 1]).all(|other| callsites.get(other).is_none()));
    }

    #[test]
    fn threads_agree_on_numbers() {
        let callsites = Callsites::new();
        let all: Vec<_> = (0..100).map(|_| leaked()).collect();
        let number_all = || all.iter().map(|one| callsites.number(one)).collect::<Vec<_>>();
        let (left, right) = std::thread::scope(|scope| {
            let other = scope.spawn(number_all);
            (number_all(), other.join().expect("the other thread"))
        });
        assert_eq!(left, right);
    }
}
