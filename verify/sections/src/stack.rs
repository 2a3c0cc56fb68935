//! `push` and `pop`.

use std::mem::MaybeUninit;

use crate::critical::by_mark;
use crate::exhaust;
use crate::operation::{Operation, noise};
use crate::world::Shard;

const CAPACITY: u64 = 6;
const ITEM: u64 = 0x00c0_ffee;

/// Inactive, seized, and from empty to full; and what no shard has.
const TOPS: [i64; 11] = [0, -1, -2, i64::MIN, i64::MIN + 1, 1, 2, 3, 6, 7, i64::MAX];

fn shard(slot: usize, top: i64) -> Shard {
    let mut shard = noise(slot);
    shard[0] = top as u64;
    shard
}

/// Slots above the items.
fn forget_free_slots(shard: &mut Shard) {
    let top = shard[0];
    if (1..=CAPACITY).contains(&top) {
        shard[top as usize..=CAPACITY as usize].fill(0);
    }
}

struct Push(i64);

impl Operation for Push {
    fn call(&self, word: usize) -> Option<u64> {
        let item = MaybeUninit::new(ITEM);
        // SAFETY: the word is one of the test's world, which has set all that sections read.
        unsafe { by_mark!(word, push(&CAPACITY, item), else false) }.then_some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        shard(slot, self.0)
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        let top = shard[0];
        let room = top.wrapping_sub(1) < CAPACITY;
        if room {
            shard[top as usize] = ITEM;
            shard[0] = top + 1;
        }
        room.then_some(0)
    }

    fn forget_free_parts(&self, shard: &mut Shard) {
        forget_free_slots(shard);
    }
}

struct Pop(i64);

impl Operation for Pop {
    fn call(&self, word: usize) -> Option<u64> {
        // SAFETY: as above; every item is initialised.
        unsafe { by_mark!(word, pop(), else None).map(|item| item.assume_init()) }
    }

    fn shard(&self, slot: usize) -> Shard {
        shard(slot, self.0)
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        let top = shard[0] as i64;
        (top > 1).then(|| {
            shard[0] = top as u64 - 1;
            shard[top as usize - 1]
        })
    }

    fn forget_free_parts(&self, shard: &mut Shard) {
        forget_free_slots(shard);
    }
}

/// Where there is room, and where there is none.
pub fn push() {
    let runs = exhaust::all(&Push(3)) + exhaust::all(&Push(7));
    println!("{runs} runs");
}

/// Whatever the top is.
pub fn push_at_any_top() {
    TOPS.into_iter().for_each(|top| exhaust::briefly(&Push(top)));
}

/// Where there is an item, and where there is none.
pub fn pop() {
    let runs = exhaust::all(&Pop(3)) + exhaust::all(&Pop(1));
    println!("{runs} runs");
}

/// Whatever the top is.
pub fn pop_at_any_top() {
    // Nothing is behind the words of the test, so no such top can be.
    let tops = TOPS.into_iter().filter(|&top| top != i64::MAX);
    tops.for_each(|top| exhaust::briefly(&Pop(top)));
}
