//! 64-bit RISC-V: the orders that other processors must observe, derived from the instructions. An
//! emulator on another architecture shows none of them, and a processor of this one rarely shows a
//! missing one.

use crate::acquire;
use crate::append;
use crate::exhaust;
use crate::operation::Operation;
use crate::stepping;
use crate::tally;
use crate::words;
use crate::world::{Source, World};

/// The relevant property of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    /// `fence r, rw`.
    Acquiring,
    /// `fence w, w`.
    BetweenStores,
    /// `fence rw, w`.
    Releasing,
    /// A conditional branch.
    Branch,
    Other,
}

fn kind(instruction: u32) -> Kind {
    match instruction {
        0x0230_000f => Kind::Acquiring,
        0x0110_000f => Kind::BetweenStores,
        0x0310_000f => Kind::Releasing,
        // Loads and stores, those of floats too, the branches on two registers; then of the short ones
        // `c.fld`, `c.lw` and `c.ld`, `c.fsd`, `c.sw` and `c.sd`, `c.beqz` and `c.bnez`.
        whole if whole & 3 == 3 => match whole & 0x7f {
            0x03 | 0x07 => Kind::Load,
            0x23 | 0x27 => Kind::Store,
            0x63 => Kind::Branch,
            _ => Kind::Other,
        },
        short => match (short & 3, short >> 13) {
            (0, 1..=3) => Kind::Load,
            (0, 5..=7) => Kind::Store,
            (1, 6 | 7) => Kind::Branch,
            _ => Kind::Other,
        },
    }
}

/// Returns the kinds of the instructions of the section that an operation visits.
fn kinds(operation: &dyn Operation, source: Source) -> Vec<Kind> {
    let section = exhaust::section_of(operation, &World::new(), source);
    stepping::instructions(section).map(|(_, instruction)| kind(instruction)).collect()
}

/// Tests that a thread that finds a shard open or a value free observes the writes before: a fence
/// follows each of the two loads, and the first orders the second.
pub fn acquire_reads_the_shard_with_acquiring_loads() {
    use Kind::{Acquiring, Branch, Load, Store};
    for source in [Source::Kernel, Source::Table] {
        let kinds = kinds(&acquire::FREE, source);
        let end = [Load, Branch, Acquiring, Load, Branch, Acquiring, Store];
        assert!(kinds.ends_with(&end), "{kinds:?}");
    }
}

/// Tests that a consumer that reads the head reads the record: the commit releases. A consumer that
/// reads new bytes in place of an old record observes that the tail has moved: nothing is stored
/// before the barrier.
pub fn append_publishes_in_order() {
    for source in [Source::Kernel, Source::Table] {
        let kinds = kinds(&append::SHORT, source);
        assert!(kinds.ends_with(&[Kind::Store, Kind::Releasing, Kind::Store]), "{kinds:?}");
        let barrier = kinds.iter().position(|&kind| kind == Kind::BetweenStores);
        let first_store = kinds.iter().position(|&kind| kind == Kind::Store).expect("it stores");
        assert!(barrier.is_some_and(|barrier| barrier < first_store), "{kinds:?}");
    }
}

/// Tests that a reader of a journal reads the data that it stands for: the commit releases. A
/// reader that reads a write to a word that a journal no longer names observes the next journal:
/// nothing is stored before the barrier. A section sees the value as it was made.
pub fn tally_publishes_in_order() {
    for source in [Source::Kernel, Source::Table] {
        let kinds = kinds(&tally::OTHER, source);
        assert!(kinds.ends_with(&[Kind::Releasing, Kind::Store]), "{kinds:?}");
        let barrier = kinds.iter().position(|&kind| kind == Kind::BetweenStores);
        let stores = kinds.iter().filter(|&&kind| kind == Kind::Store).count();
        let first_store = kinds.iter().position(|&kind| kind == Kind::Store).expect("it stores");
        assert!(stores == 3 && barrier.is_some_and(|barrier| barrier < first_store), "{kinds:?}");
        let fences = kinds.iter().filter(|&&kind| kind == Kind::Acquiring).count();
        assert_eq!(fences, 1, "{kinds:?}");
    }
}

/// Tests that a thread that loads a word reads what was written before it was stored, and that a
/// section sees what the last holder of the shard did.
pub fn words_publish_in_order() {
    for source in [Source::Kernel, Source::Table] {
        for operation in &words::PUBLISHING {
            let kinds = kinds(operation, source);
            assert!(kinds.ends_with(&[Kind::Releasing, Kind::Store]), "{kinds:?}");
            let fences = kinds.iter().filter(|&&kind| kind == Kind::Acquiring).count();
            assert_eq!(fences, 1, "{kinds:?}");
        }
    }
}
