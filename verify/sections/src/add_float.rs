//! `add_float`.

use crate::critical::by_mark;
use crate::exhaust;
use crate::operation::Operation;
use crate::world::Shard;

struct Add(f64);

impl Operation for Add {
    fn call(&self, word: usize) -> Option<u64> {
        // SAFETY: the word is one of the test's world, which has set all that sections read.
        unsafe { by_mark!(word, add_float(self.0), else false) }.then_some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        floats(slot)
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        shard[0] = (f64::from_bits(shard[0]) + self.0).to_bits();
        Some(0)
    }
}

/// Returns a shard full of floats that occur nowhere else.
pub(crate) fn floats(slot: usize) -> Shard {
    std::array::from_fn(|word| (1000.0 * slot as f64 + word as f64 + 0.125).to_bits())
}

/// Tests numbers, and values that are not numbers.
pub fn floats_are_added() {
    let runs = exhaust::all(&Add(7.75));
    for n in [0.0, -0.5, 1e300, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN] {
        exhaust::briefly(&Add(n));
    }
    println!("{runs} runs");
}
