//! The accesses of a set of IDs, with their memory orders.

use crate::sys::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Adds members. Release: a thread that reads them sees everything that was done before.
pub(crate) fn insert(word: &AtomicU64, bits: u64) {
    word.fetch_or(bits, Release);
}

/// Removes members. Release: a thread that finds them removed sees everything that was done before.
pub(crate) fn remove(word: &AtomicU64, bits: u64) {
    word.fetch_and(!bits, Release);
}

/// Returns the members. Acquire: pairs with the release in `insert` and `remove`.
pub(crate) fn members(word: &AtomicU64) -> u64 {
    word.load(Acquire)
}

/// Publishes a block unless there is one, or can be none. Returns `true` if it did. Release: a
/// thread that finds the block finds it empty.
pub(crate) fn publish(far: &AtomicUsize, block: usize) -> bool {
    far.compare_exchange(0, block, Release, Relaxed).is_ok()
}

/// Returns the published block. Acquire: pairs with the release in `publish`.
pub(crate) fn published(far: &AtomicUsize) -> usize {
    far.load(Acquire)
}
