//! The faults that `exhaust` must detect.

use std::panic::catch_unwind;

use crate::arena::SHIFT;
use crate::critical::{MARKS, by_mark};
use crate::exhaust;
use crate::operation::{Operation, noise};
use crate::world::{HERE, Shard};

/// An addition without a section, or with one and a model that is wrong.
struct Faulty {
    in_a_section: bool,
    modelled: u64,
}

impl Operation for Faulty {
    fn call(&self, word: usize) -> Option<u64> {
        if self.in_a_section {
            // SAFETY: the word is one of the test's world, which has set all that sections read.
            return unsafe { by_mark!(word, add(5), else false) }.then_some(0);
        }
        let cell = (word & !MARKS) + (HERE.slot << SHIFT);
        let cell = std::ptr::with_exposed_provenance_mut::<u64>(cell);
        // SAFETY: the cell is a word of the test's world, which only this thread uses.
        unsafe { cell.write_volatile(cell.read_volatile() + 5) };
        Some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        noise(slot)
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        shard[0] += self.modelled;
        Some(0)
    }
}

fn is_found_out(in_a_section: bool, modelled: u64) -> bool {
    catch_unwind(|| exhaust::all(&Faulty { in_a_section, modelled })).is_err()
}

/// Tests a change of memory without a section.
pub fn what_is_no_section_is_found_out() {
    assert!(is_found_out(false, 5));
}

/// Tests a wrong model.
pub fn what_a_section_does_not_do_is_found_out() {
    assert!(is_found_out(true, 6));
    assert!(!is_found_out(true, 5));
}
