//! What the test knows of an operation: how it is called, and what it does to a shard.

use crate::world::Shard;

/// One of the sections, in one situation.
pub(crate) trait Operation {
    /// Runs the section on the object at `word`. `None`: it left without having done anything.
    fn call(&self, word: usize) -> Option<u64>;

    /// A shard as the section finds it. Every slot has other contents.
    fn shard(&self, slot: usize) -> Shard;

    /// What it does to a shard; the result is what `call` returns.
    fn model(&self, shard: &mut Shard) -> Option<u64>;

    /// Takes out what means nothing, so that an aborted section may have written it.
    fn forget_free_parts(&self, _shard: &mut Shard) {}

    /// What a result tells of the shard where the operation took place is this slot's.
    fn result_in(&self, result: Option<u64>, _distance: usize) -> Option<u64> {
        result
    }
}

/// Whose section it is: the library's, or what C programs have inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    C,
}

/// A shard full of numbers that are nowhere else.
pub(crate) fn noise(slot: usize) -> Shard {
    std::array::from_fn(|word| 0x0101_0000_0000 * (slot as u64 + 1) + 0x0101 * word as u64)
}
