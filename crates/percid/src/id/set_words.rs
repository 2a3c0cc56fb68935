//! The accesses of a set of IDs, with their orders.

use crate::sys::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Adds members. Release: whoever finds them sees what was done before.
pub(crate) fn insert(word: &AtomicU64, bits: u64) {
    word.fetch_or(bits, Release);
}

/// Removes members. Release: whoever finds them gone sees what was done before.
pub(crate) fn remove(word: &AtomicU64, bits: u64) {
    word.fetch_and(!bits, Release);
}

/// The members: the other side of both.
pub(crate) fn members(word: &AtomicU64) -> u64 {
    word.load(Acquire)
}

/// Publishes a block unless there is one, or can be none. Returns whether it did. Release: whoever
/// finds the block finds it empty.
pub(crate) fn publish(far: &AtomicUsize, block: usize) -> bool {
    far.compare_exchange(0, block, Release, Relaxed).is_ok()
}

/// What was published: the other side of that.
pub(crate) fn published(far: &AtomicUsize) -> usize {
    far.load(Acquire)
}
