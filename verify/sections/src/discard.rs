//! `discard`.

use crate::critical::by_mark;
use crate::critical::ring::TAIL;
use crate::exhaust;
use crate::operation::Operation;
use crate::ring::{CAPACITY, data, head, shard, size, tail};
use crate::world::Shard;

struct Discard<'a> {
    keep: u64,
    tail: u64,
    lengths: &'a [u64],
}

impl Operation for Discard<'_> {
    fn call(&self, word: usize) -> Option<u64> {
        // SAFETY: the word is one of the test's world, which has set all that sections read.
        unsafe { by_mark!(word, discard(self.keep, CAPACITY - 1), else false) }.then_some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        shard(slot, self.tail, self.lengths)
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        let mut position = tail(shard);
        while head(shard) - position > self.keep {
            position += size(shard[data(position)] & 0xffff);
        }
        shard[TAIL / 8] = position;
        Some(0)
    }
}

const LENGTHS: [u64; 6] = [16, 3, 40, 0, 7, 100];
/// From the beginning, and over the end.
const TAILS: [u64; 2] = [0, 9 * CAPACITY + 400];

/// Tests discards one by one, over the end of the ring, and nothing.
pub fn discard() {
    let at = |tail, keep| Discard { keep, tail, lengths: &LENGTHS };
    let runs = exhaust::all(&at(TAILS[1], size(100) + 1)) + exhaust::all(&at(TAILS[0], 500));
    println!("{runs} runs");
}

/// Tests discards of everything, down to a record's beginning, into one, and nothing at all.
pub fn discard_all_but_so_many_bytes() {
    let all: u64 = LENGTHS.into_iter().map(size).sum();
    for tail in TAILS {
        for keep in [0, 8, size(100), size(100) + 1, all - 24, all - 1, all, all + 8] {
            exhaust::briefly(&Discard { keep, tail, lengths: &LENGTHS });
        }
    }
}
