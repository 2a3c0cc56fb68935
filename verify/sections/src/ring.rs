//! A ring's shard, for the operations on it.

use crate::critical::ring::{DATA, HEAD, NUMBERS, TAIL};
use crate::operation::noise;
use crate::world::Shard;

pub(crate) const CAPACITY: u64 = 512;
/// A value that an aborted try may have left beside the number of the next record.
const LEFTOVER: u64 = 0x1357;

/// Makes a ring with records of these lengths, the first at `tail`.
pub(crate) fn shard(slot: usize, tail: u64, lengths: &[u64]) -> Shard {
    let mut shard = noise(slot);
    let (mut head, mut number) = (tail, 7 + slot as u64);
    for length in lengths {
        shard[data(head)] = number << 16 | length;
        head += size(*length);
        number += 1;
    }
    shard[HEAD / 8] = head;
    shard[TAIL / 8] = tail;
    shard[data(head)] = number << 16 | LEFTOVER;
    shard
}

/// Returns the index of the word at a position of a shard.
pub(crate) fn data(position: u64) -> usize {
    DATA / 8 + (position % CAPACITY / 8) as usize
}

/// Returns the bytes that a record takes: a header, and its data in whole words.
pub(crate) fn size(length: u64) -> u64 {
    8 + length.next_multiple_of(8)
}

pub(crate) fn head(shard: &Shard) -> u64 {
    shard[HEAD / 8]
}

pub(crate) fn tail(shard: &Shard) -> u64 {
    shard[TAIL / 8]
}

/// Clears the part between head and tail, except for the number of the next record.
pub(crate) fn forget_free_part(shard: &mut Shard) {
    let (head, tail) = (head(shard), tail(shard));
    shard[data(head)] &= NUMBERS as u64;
    for position in (head + 8..tail + CAPACITY).step_by(8) {
        shard[data(position)] = 0;
    }
}
