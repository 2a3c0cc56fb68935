//! Grains that are to move, a bit each, and the record of where to.
//!
//! # Proof
//!
//! A thread that wants a grain to move stores the record, and then sets the bit, also if it finds it
//! set. The balancer clears the bit, and then loads the record. Both change the bit by one
//! read-modify-write, so one of them is first. If the bit is set first, the record is released by
//! that and acquired by the clearing: the balancer loads it, or a later one. If it is cleared first,
//! it is set again afterwards, and the wish has its turn next time. So no wish is lost, and no grain
//! goes where an older one would have had it.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom`.

use crate::sys::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed, Release},
};

/// Makes a wish, whose record was stored. Returns whether there was none.
pub(crate) fn make(word: &AtomicU64, bit: u64) -> bool {
    word.fetch_or(bit, Release) & bit == 0
}

/// Takes a wish back. Returns whether there was one.
pub(crate) fn take_back(word: &AtomicU64, bit: u64) -> bool {
    word.load(Relaxed) & bit != 0 && word.fetch_and(!bit, AcqRel) & bit != 0
}

/// Takes a wish, to fulfil it. Returns whether it was still there, and the record.
pub(crate) fn take(word: &AtomicU64, bit: u64, record: &AtomicU32) -> (bool, u32) {
    let was_there = take_back(word, bit);
    // Acquire, by clearing the bit: the record that goes with it, or a later one.
    (was_there, record.load(Relaxed))
}
