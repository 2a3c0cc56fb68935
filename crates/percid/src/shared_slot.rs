//! The words of the shared slot: updated by atomic instructions, by threads without an ID, and by
//! those that take what the IDs have counted.

use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Adds to a word of the shared slot. Wraps around.
pub(crate) fn add(word: &AtomicI64, n: i64) {
    word.fetch_add(n, Relaxed);
}

/// The total of a shared word and the words of the IDs. `word` may be missing as long as no thread
/// ever wrote to it. `of_ids` adds up the words of the IDs.
///
/// It is never less than what was added before, less what was taken meanwhile: whatever lowered the
/// shared word is seen in the words of the IDs, since these are read later.
pub(crate) fn sum(word: Option<&AtomicI64>, of_ids: impl FnOnce() -> i64) -> i64 {
    // Acquire: who sees it lowered by a take sees at least what that one saw of the IDs.
    let shared = word.map_or(0, |word| word.load(Acquire));
    shared.wrapping_add(of_ids())
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
    // Acquire: as in `sum`.
    let before = word.load(Acquire);
    let total = before.wrapping_add(of_ids());
    let lowered = before.wrapping_sub(total);
    // Release: for those who acquire above. Nothing is read afterwards.
    word.compare_exchange(before, lowered, Release, Relaxed).ok().map(|_| total)
}
