//! Items as words, and their announcement to race detectors.

use std::mem::MaybeUninit;

use crate::sys::race_detector;

/// A word of an item; part of it may be padding.
pub(super) type Item = MaybeUninit<u64>;

/// An item as a word; bytes beyond its size are not initialised.
#[inline(always)]
pub(super) fn into_word<T>(item: T) -> Item {
    let mut word = Item::uninit();
    // SAFETY: an item fits a word, as `Stack::bounded` asserts.
    unsafe { word.as_mut_ptr().cast::<T>().write(item) };
    word
}

/// Returns the item that a word was made of.
///
/// # Safety
///
/// The word was made of a `T`, which is converted back once.
#[inline(always)]
pub(super) unsafe fn from_word<T>(word: Item) -> T {
    // SAFETY: the caller guarantees that the word was made of a `T`.
    unsafe { word.as_ptr().cast::<T>().read() }
}

/// Announces a push before it happens: a thread that pops the item sees everything behind it.
/// Returns the item to be pushed, with the bits that identify it.
pub(super) fn announce_push(item: Item) -> Item {
    if !race_detector::is_present() {
        return item;
    }
    let bits = race_detector::frozen(item);
    race_detector::release(race_detector::key_of(bits));
    Item::new(bits)
}

pub(super) fn announce_popped(item: Item) {
    if race_detector::is_present() {
        race_detector::acquire(race_detector::key_of(race_detector::frozen(item)));
    }
}
