//! `add`, in Rust and as C programs have it inline.

use std::ffi::c_int;

use crate::critical::by_mark;
use crate::exhaust;
use crate::operation::{Language, Operation, noise};
use crate::world::Shard;

const AMOUNTS: [i64; 4] = [1, -3, 77, 1 << 40];

struct Add(Language, i64);

unsafe extern "C" {
    fn percid_inline_add(address: u64, n: i64) -> c_int;
}

impl Operation for Add {
    fn call(&self, word: usize) -> Option<u64> {
        let &Add(language, n) = self;
        // SAFETY: the word is one of the test's world, which has set all that sections read.
        let done = unsafe {
            match language {
                Language::Rust => by_mark!(word, add(n), else false),
                Language::C => percid_inline_add(word as u64, n) != 0,
            }
        };
        done.then_some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        noise(slot)
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        shard[0] = shard[0].wrapping_add_signed(self.1);
        Some(0)
    }
}

fn add(language: Language) {
    let runs = exhaust::all(&Add(language, 77));
    AMOUNTS.into_iter().for_each(|n| exhaust::briefly(&Add(language, n)));
    println!("{runs} runs");
}

/// Counters of Rust.
pub fn add_in_rust() {
    add(Language::Rust);
}

/// Counters of C.
pub fn add_in_c() {
    add(Language::C);
}
