//! The words of the shared slot. Threads without an ID update them by atomic instructions, and so
//! do threads that take the counts of the IDs.

use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Adds to a word that other threads may add to. Wraps around.
pub(crate) fn add(word: &AtomicI64, n: i64) {
    word.fetch_add(n, Relaxed);
}

/// Returns the total of a shared word and the words of the IDs. `word` may be missing as long as no
/// thread ever wrote to it. `of_ids` returns the sum of the IDs' words.
///
/// The total is never less than everything that was added before, less everything that was taken in
/// the meantime. The words of the IDs are read later than the shared word, so they contain whatever
/// lowered the shared word.
pub(crate) fn sum(word: Option<&AtomicI64>, of_ids: impl FnOnce() -> i64) -> i64 {
    // Acquire: a thread that sees the word lowered by a take sees at least what that take saw of
    // the IDs.
    let shared = word.map_or(0, |word| word.load(Acquire));
    shared.wrapping_add(of_ids())
}

/// Takes the total of a shared word and the words of the IDs, and leaves `n`. It does not write to
/// the words of the IDs, which only their CPUs may do. Instead it lowers the shared word by the
/// total less `n`, in one exchange, so that the new total is `n` and what was added since. Returns
/// `None` if the shared word was changed during the call: then try again.
///
/// The total falls by exactly the amount that is taken less `n`, whichever thread took or added in
/// between. That holds even if the shared word had another value in the meantime and returned to
/// this one. So all amounts ever taken, plus the last total, are the sum of all additions and of
/// everything that was left.
///
/// `of_ids` returns the sum of the IDs' words; it is called after the shared word was read.
pub(crate) fn swap(word: &AtomicI64, n: i64, of_ids: impl FnOnce() -> i64) -> Option<i64> {
    // Acquire: this thread sees at least what an earlier take saw of the IDs.
    let before = word.load(Acquire);
    let total = before.wrapping_add(of_ids());
    let lowered = before.wrapping_sub(total).wrapping_add(n);
    // Release: pairs with the acquire loads above. Nothing is read afterwards.
    word.compare_exchange(before, lowered, Release, Relaxed).ok().map(|_| total)
}
