//! The test's description of an operation: its call, and its effect on a shard.

use crate::world::Shard;

/// One of the sections, in one situation.
pub(crate) trait Operation {
    /// Runs the section on the object at `word`. Returns `None` if it left without an effect.
    fn call(&self, word: usize) -> Option<u64>;

    /// Returns a shard as the section finds it. Every slot has other contents.
    fn shard(&self, slot: usize) -> Shard;

    /// Applies the effect to a shard; returns the result of `call`.
    fn model(&self, shard: &mut Shard) -> Option<u64>;

    /// Clears the parts without meaning, which an aborted section may have written.
    fn forget_free_parts(&self, _shard: &mut Shard) {}

    /// Returns the part of a result that depends on the slot whose shard the operation used.
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

/// Returns a shard full of numbers that occur nowhere else.
pub(crate) fn noise(slot: usize) -> Shard {
    std::array::from_fn(|word| 0x0101_0000_0000 * (slot as u64 + 1) + 0x0101 * word as u64)
}
