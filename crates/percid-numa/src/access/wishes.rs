//! Pending moves of grains ("wishes"): one bit for each grain, and the record of the target.
//!
//! # Proof
//!
//! A thread that requests a move stores the record, and then sets the bit, even if it is set
//! already. The balancer clears the bit, and then loads the record. Both change the bit by one
//! read-modify-write, so one of them is first. If the bit is set first, the store of the record is
//! released by that and acquired by the clearing: the balancer loads this record or a later one. If
//! the bit is cleared first, it is set again afterwards, and the next pass handles the wish. So no
//! wish is lost, and no grain is moved to the target of an outdated record.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom`.

use crate::sys::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed, Release},
};

/// Makes a wish, whose record was stored before. Returns `true` if there was none.
pub(crate) fn make(word: &AtomicU64, bit: u64) -> bool {
    word.fetch_or(bit, Release) & bit == 0
}

/// Removes a wish. Returns `true` if there was one.
pub(crate) fn take_back(word: &AtomicU64, bit: u64) -> bool {
    word.load(Relaxed) & bit != 0 && word.fetch_and(!bit, AcqRel) & bit != 0
}

/// Takes a wish for execution. Returns `true` if it was still there, and the record.
pub(crate) fn take(word: &AtomicU64, bit: u64, record: &AtomicU32) -> (bool, u32) {
    let was_there = take_back(word, bit);
    // Acquire, by clearing the bit: the record that goes with it, or a later one.
    (was_there, record.load(Relaxed))
}
