//! 64-bit Arm: the orders that other processors must observe, derived from the instructions. An
//! emulator on another architecture shows none of them, and a processor of this one rarely shows a
//! missing one.

use crate::acquire;
use crate::append;
use crate::descriptors::Descriptor;
use crate::exhaust;
use crate::operation::Operation;
use crate::tally;
use crate::words;
use crate::world::{Source, World};

/// `dmb ishst`.
const STORE_BARRIER: u32 = 0xd503_3abf;

/// Returns `true` for an `ldar` of 64 bits.
fn is_acquiring(instruction: u32) -> bool {
    instruction & 0xffff_fc00 == 0xc8df_fc00
}

/// Returns `true` for an `stlr` of 64 bits.
fn is_releasing(instruction: u32) -> bool {
    instruction & 0xffff_fc00 == 0xc89f_fc00
}

/// Returns `true` for a `str` of 64 bits, of a float too, to a register and an offset, a small one,
/// or another register.
fn is_store(instruction: u32) -> bool {
    instruction & 0xffc0_0000 == 0xf900_0000
        || instruction & 0xffc0_0000 == 0xfd00_0000
        || instruction & 0xffe0_0c00 == 0xfc20_0800
        || instruction & 0xffe0_0c00 == 0xf800_0000
        || instruction & 0xffe0_0c00 == 0xf820_0800
        || is_releasing(instruction)
}

/// Returns the instructions of the section that an operation visits.
fn instructions(operation: &dyn Operation, source: Source) -> &'static [u32] {
    let Descriptor { start, length, .. } = *exhaust::section_of(operation, &World::new(), source);
    // SAFETY: the section is part of this program.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), length / 4) }
}

/// Tests that a thread that finds a shard open or a value free observes the writes before: both
/// loads acquire, and the first orders the second.
pub fn acquire_reads_the_shard_with_acquiring_loads() {
    for source in [Source::Kernel, Source::Table] {
        let code = instructions(&acquire::FREE, source);
        let acquiring = code.iter().filter(|&&one| is_acquiring(one)).count();
        assert_eq!(acquiring, 2, "{code:x?}");
        // The state is compared with a register right behind its load, and then comes the commit.
        let [.., state, _, _, commit] = code else { panic!("{code:x?}") };
        assert!(is_acquiring(*state) && is_store(*commit), "{code:x?}");
    }
}

/// Tests that a consumer that reads the head reads the record: the commit releases. A consumer that
/// reads new bytes in place of an old record observes that the tail has moved: nothing is stored
/// before the barrier.
pub fn append_publishes_in_order() {
    for source in [Source::Kernel, Source::Table] {
        let code = instructions(&append::SHORT, source);
        assert!(code.last().is_some_and(|&commit| is_releasing(commit)), "{code:x?}");
        let barrier = code.iter().position(|&one| one == STORE_BARRIER);
        let first_store = code.iter().position(|&one| is_store(one)).expect("it stores");
        assert!(barrier.is_some_and(|barrier| barrier < first_store), "{code:x?}");
    }
}

/// Tests that a reader of a journal reads the data that it stands for: the commit releases. A
/// reader that reads a write to a word that a journal no longer names observes the next journal:
/// nothing is stored before the barrier. A section sees the value as it was made.
pub fn tally_publishes_in_order() {
    for source in [Source::Kernel, Source::Table] {
        let code = instructions(&tally::OTHER, source);
        assert!(code.last().is_some_and(|&commit| is_releasing(commit)), "{code:x?}");
        let barrier = code.iter().position(|&one| one == STORE_BARRIER);
        let stores = code.iter().filter(|&&one| is_store(one)).count();
        let first_store = code.iter().position(|&one| is_store(one)).expect("it stores");
        assert!(stores == 3 && barrier.is_some_and(|barrier| barrier < first_store), "{code:x?}");
        assert_eq!(code.iter().filter(|&&one| is_acquiring(one)).count(), 1, "{code:x?}");
    }
}

/// Tests that a thread that loads a word reads what was written before it was stored, and that a
/// section sees what the last holder of the shard did.
pub fn words_publish_in_order() {
    for source in [Source::Kernel, Source::Table] {
        for operation in &words::PUBLISHING {
            let code = instructions(operation, source);
            assert!(code.last().is_some_and(|&commit| is_releasing(commit)), "{code:x?}");
            assert_eq!(code.iter().filter(|&&one| is_acquiring(one)).count(), 1, "{code:x?}");
        }
    }
}
