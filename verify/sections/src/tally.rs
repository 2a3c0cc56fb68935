//! `tally`.

use crate::add_float::floats;
use crate::critical::by_mark;
use crate::critical::tally::{BUCKETS, COUNT_SHIFT, COUNTS, JOURNAL, Journal, SUMS, place};
use crate::critical::words::READY;
use crate::exhaust;
use crate::operation::{Operation, noise};
use crate::world::{Shard, WORDS};

/// The words of a shard.
const STATE: usize = 0;
const THE_JOURNAL: usize = JOURNAL / 8;
const FIRST_SUM: usize = SUMS / 8;
const FIRST_COUNT: usize = COUNTS / 8;
/// The last bucket that a shard of the test has.
const LAST: usize = WORDS - FIRST_COUNT - 1;

/// Counts `times` values with a sum in a bucket, after another bucket was counted last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    bucket: usize,
    times: u64,
    sum: f64,
    last: usize,
    which: u64,
    /// The shard is ready: no thread holds it.
    ready: bool,
}

/// The one that the orders are read off.
pub(crate) const OTHER: Tally =
    Tally { bucket: 5, times: 3, sum: 2.5, last: 9, which: 0, ready: true };

fn journal(which: u64, bucket: usize, count: u64) -> u64 {
    which | place(bucket) as u64 | count << COUNT_SHIFT
}

impl Operation for Tally {
    fn call(&self, word: usize) -> Option<u64> {
        let &Tally { bucket, times, sum, .. } = self;
        // SAFETY: the word is one of the test's world, which has set all that sections read, and the
        // bucket is one of the shard.
        unsafe { by_mark!(word, tally(place(bucket), times, sum), else false) }.then_some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        let mut shard = noise(slot);
        shard[FIRST_SUM..FIRST_COUNT].copy_from_slice(&floats(slot)[FIRST_SUM..FIRST_COUNT]);
        shard[THE_JOURNAL] = journal(self.which, self.last, 0x77 * (slot as u64 + 1));
        shard[STATE] = if self.ready { READY as u64 } else { 7 };
        shard
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        if !self.ready {
            return None;
        }
        let before = Journal(shard[THE_JOURNAL]);
        shard[FIRST_COUNT + before.bucket()] = before.count();
        let count = &mut shard[FIRST_COUNT + self.bucket];
        let now = count.wrapping_add(self.times);
        let sum = f64::from_bits(shard[FIRST_SUM + before.sum()]) + self.sum;
        let which = 1 - before.sum() as u64;
        shard[FIRST_SUM + which as usize] = sum.to_bits();
        shard[THE_JOURNAL] = journal(which, self.bucket, now);
        Some(0)
    }

    /// Clears the count of the journal's bucket, which the journal represents, and the sum that is
    /// not in use.
    fn forget_free_parts(&self, shard: &mut Shard) {
        let journal = Journal(shard[THE_JOURNAL]);
        shard[FIRST_COUNT + journal.bucket()] = 0;
        shard[FIRST_SUM + 1 - journal.sum()] = 0;
    }
}

/// Tests a bucket that was not counted last, and one that was.
pub fn a_value_is_counted_and_added() {
    let same = Tally { last: OTHER.bucket, which: 1, ..OTHER };
    println!("{} runs", exhaust::all(&OTHER) + exhaust::all(&same));
    exhaust::briefly(&Tally { ready: false, ..OTHER });
}

/// Tests the first and the last bucket, and either sum.
pub fn whatever_was_counted_last() {
    const { assert!(LAST < BUCKETS) };
    for (bucket, last) in [(0, 0), (0, LAST), (LAST, 0), (LAST, LAST), (3, 4)] {
        for which in [0, 1] {
            for (times, sum) in [(1, 0.5), (1, f64::NAN), (u64::MAX, -1.0)] {
                exhaust::briefly(&Tally { bucket, times, sum, last, which, ready: true });
            }
        }
    }
}
