//! Membership masks: all threads use one mask, each sets its own bit, which is nearly always set
//! already.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use percid::ActiveMask;

use super::form::repeat;
use super::operation::{Account, Family, Measured, Operation};

const FAMILY: Family = Family::Masks;
const BITS: u32 = u64::BITS;
/// Number of words, sufficient for the CPUs of any Linux machine.
const WORDS: usize = 8192 / BITS as usize;

/// Returns the operations of `percid bench mask`.
pub(crate) fn operations() -> Vec<Operation> {
    vec![
        Operation::other(FAMILY, "mask_fetch_or", Marking::on(FetchOr(words()))),
        Operation::other(FAMILY, "mask_test_set", Marking::on(TestSet(words()))),
        Operation::other(FAMILY, "mask_mark", Marking::on(ActiveMask::new())),
    ]
}

/// A mask in the loop.
trait Mask: Sync {
    fn mark(&self, id: u32);

    /// Returns the number of marked IDs.
    fn members(&self) -> u32;
}

type Words = [AtomicU64; WORDS];

fn words() -> Words {
    [const { AtomicU64::new(0) }; WORDS]
}

fn ones(words: &Words) -> u32 {
    words.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
}

#[inline(always)]
fn word_and_bit(words: &Words, id: u32) -> (&AtomicU64, u64) {
    (&words[(id / BITS) as usize % WORDS], 1 << (id % BITS))
}

/// Sets the bit in any case.
struct FetchOr(Words);

impl Mask for FetchOr {
    #[inline(always)]
    fn mark(&self, id: u32) {
        let (word, bit) = word_and_bit(&self.0, id);
        word.fetch_or(bit, Ordering::Relaxed);
    }

    fn members(&self) -> u32 {
        ones(&self.0)
    }
}

/// Sets the bit only if it is clear.
struct TestSet(Words);

impl Mask for TestSet {
    #[inline(always)]
    fn mark(&self, id: u32) {
        let (word, bit) = word_and_bit(&self.0, id);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn members(&self) -> u32 {
        ones(&self.0)
    }
}

impl Mask for ActiveMask {
    #[inline(always)]
    fn mark(&self, id: u32) {
        ActiveMask::mark(self, id);
    }

    fn members(&self) -> u32 {
        self.drain(|_| ()) as u32
    }
}

/// A mask on which worker *n* marks ID *n*.
struct Marking<M> {
    mask: M,
    /// The highest worker that has marked, plus one.
    workers: AtomicU32,
}

impl<M: Mask> Marking<M> {
    fn on(mask: M) -> Self {
        Marking { mask, workers: AtomicU32::new(0) }
    }
}

impl<M: Mask> Measured for Marking<M> {
    fn repeat(&self, times: u64, worker: usize) {
        let id = worker as u32;
        self.workers.fetch_max(id + 1, Ordering::Relaxed);
        mark(&self.mask, id, times);
    }

    /// Compares the workers that marked with the members of the mask.
    fn account(&self, _: u64) -> Option<Account> {
        let workers = self.workers.load(Ordering::Relaxed);
        Some(Account { added: workers.into(), sum: self.mask.members().into() })
    }
}

#[inline(never)]
fn mark<M: Mask>(mask: &M, id: u32, times: u64) {
    repeat(times, |_| mask.mark(id));
}
