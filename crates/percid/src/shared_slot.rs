//! The words of the shared slot: updated by atomic instructions, by threads without an ID, and by
//! those that take what the IDs have counted.

use crate::sys::atomic::{
    AtomicI64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// Adds to a word of the shared slot. Wraps around.
pub(crate) fn add(word: &AtomicI64, n: i64) {
    word.fetch_add(n, Relaxed);
}

/// Takes the total of a shared word and the words of the IDs, without writing to the words of the
/// IDs, which only their CPUs may do: the shared word is lowered by the total instead, in one
/// exchange, so that the new total is what was added since. `None`: the shared word was changed
/// meanwhile; try again.
///
/// What is taken is exactly what the total falls by, whichever thread took or added in between,
/// even if the shared word had another value meanwhile and came back to this one. So all that is
/// ever taken, plus the last total, is all that was ever added.
///
/// `of_ids` adds up the words of the IDs; it is called after the shared word was read.
pub(crate) fn take(word: &AtomicI64, of_ids: impl FnOnce() -> i64) -> Option<i64> {
    // Acquire: a thread that sees it lowered by another take sees at least what that one saw of the
    // IDs.
    let before = word.load(Acquire);
    let total = before.wrapping_add(of_ids());
    let lowered = before.wrapping_sub(total);
    word.compare_exchange(before, lowered, AcqRel, Relaxed).ok().map(|_| total)
}
