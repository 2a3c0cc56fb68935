//! `push` and `pop`, in Rust and as C programs have them inline.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use crate::critical::by_mark;
use crate::exhaust;
use crate::operation::{Language, Operation, noise};
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

unsafe extern "C" {
    fn percid_inline_push(word: u64, capacity: *const u64, item: *mut c_void) -> c_int;
    fn percid_inline_pop(word: u64, item: *mut *mut c_void) -> c_int;
}

struct Push(Language, i64);

impl Operation for Push {
    fn call(&self, word: usize) -> Option<u64> {
        // SAFETY: the word is one of the test's world, with all values that sections read.
        let done = unsafe {
            match self.0 {
                Language::Rust => {
                    let item = MaybeUninit::new(ITEM);
                    by_mark!(word, push(&CAPACITY, item), else false)
                }
                Language::C => {
                    let item = std::ptr::without_provenance_mut(ITEM as usize);
                    percid_inline_push(word as u64, &CAPACITY, item) != 0
                }
            }
        };
        done.then_some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        shard(slot, self.1)
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

struct Pop(Language, i64);

impl Operation for Pop {
    fn call(&self, word: usize) -> Option<u64> {
        match self.0 {
            // SAFETY: the word is one of the test's world; every item is initialised.
            Language::Rust => unsafe {
                by_mark!(word, pop(), else None).map(|item| item.assume_init())
            },
            Language::C => {
                let mut item = std::ptr::null_mut();
                // SAFETY: the word is one of the test's world, with all values that sections read.
                let done = unsafe { percid_inline_pop(word as u64, &mut item) } != 0;
                done.then_some(item.addr() as u64)
            }
        }
    }

    fn shard(&self, slot: usize) -> Shard {
        shard(slot, self.1)
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

/// Tests with and without space, and with any top.
fn push(language: Language) {
    let runs = exhaust::all(&Push(language, 3)) + exhaust::all(&Push(language, 7));
    TOPS.into_iter().for_each(|top| exhaust::briefly(&Push(language, top)));
    println!("{runs} runs");
}

/// Tests with and without an item, and with any top.
fn pop(language: Language) {
    let runs = exhaust::all(&Pop(language, 3)) + exhaust::all(&Pop(language, 1));
    // Nothing is behind the words of the test, so no such top can be.
    let tops = TOPS.into_iter().filter(|&top| top != i64::MAX);
    tops.for_each(|top| exhaust::briefly(&Pop(language, top)));
    println!("{runs} runs");
}

/// Tests the section of the library.
pub fn push_in_rust() {
    push(Language::Rust);
}

/// Tests the section of C programs.
pub fn push_in_c() {
    push(Language::C);
}

/// Tests the section of the library.
pub fn pop_in_rust() {
    pop(Language::Rust);
}

/// Tests the section of C programs.
pub fn pop_in_c() {
    pop(Language::C);
}
