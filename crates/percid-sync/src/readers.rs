//! The readers that are inside something, counted by ID.
//!
//! # The word
//!
//! A [`Counter`] has one word for each ID. Entering adds one to both of its halves, leaving
//! subtracts one from the lower half. So the lower half of the sum is the number of readers inside,
//! and the upper half makes every change visible: `a` entries and `b` exits change a word by
//! `a * 2^32 + a - b`, which is zero only if both are zero (up to 2^32 of them between two looks).
//! A reader may leave on another ID than it has entered on; only the sum has a meaning.
//!
//! # Proof
//!
//! [`Readers::none`] sums all words twice. If both sums are equal, every word had the same value
//! both times, since each word's change between its two readings is of the form above, and they add
//! up to zero. So both passes have counted the same set *S* of entries and exits.
//!
//! *If an exit is in S, so is its entry.* The reader runs a release fence before the exit. The first
//! pass counted the exit, and an acquire fence follows it; so the entry happens before the second
//! pass, which counts it. (Operations on one word are ordered: a section of its ID happens after the
//! one before it, by the kernel's context switch if another thread did that.)
//!
//! So if the lower half of the sum is zero, all entries in *S* have their exits in *S*: every reader
//! that was counted has left, and what it read happened before. One pass alone does not suffice: it
//! may count the exit of a reader on one ID after it has missed the entry on another, and so balance
//! a reader that is inside.
//!
//! *Readers that are not counted* are the matter of the caller's fence: [`fence::all`] between its
//! own store and the first pass. A reader whose entry is missed then sees that store, if it runs
//! [`fence::light`] after the entry.
//!
//! [`fence::all`]: percid::fence::all
//! [`fence::light`]: percid::fence::light
//!
//! The model `sync_lock` of percid's verification has both sums, and fails with one of them, and
//! without the fence.

use std::sync::atomic::{
    Ordering::{Acquire, Release},
    fence as barrier,
};

use percid::id::SourceError;
use percid::{Counter, Source};

/// An entry: one reader more, and a change of the upper half.
const ENTRY: i64 = (1 << 32) + 1;
/// An exit: one reader less.
const EXIT: i64 = -1;

/// A number of readers.
#[derive(Default)]
pub(crate) struct Readers {
    words: Counter,
}

impl Readers {
    pub(crate) const fn new() -> Readers {
        Readers { words: Counter::new() }
    }

    pub(crate) fn with_source(source: Source) -> Result<Readers, SourceError> {
        Ok(Readers { words: Counter::with_source(source)? })
    }

    /// Counts a reader.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        self.words.add(ENTRY);
    }

    /// Counts `number` readers, whose threads learn of it from this one.
    pub(crate) fn admit(&self, number: u32) {
        self.words.add(ENTRY.wrapping_mul(i64::from(number)));
    }

    /// Counts a reader no more. Everything it did inside happens before a [`none`](Readers::none)
    /// that returns `true`.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        // Release: pairs with the acquire barriers of `none`.
        barrier(Release);
        self.words.add(EXIT);
    }

    /// Returns `true` if all readers that were counted have left. May return `false` while readers
    /// come and go.
    pub(crate) fn none(&self) -> bool {
        let first = self.words.sum();
        // Acquire: pairs with the release barriers of `leave`.
        barrier(Acquire);
        let second = self.words.sum();
        barrier(Acquire);
        first == second && second as i32 == 0
    }

    /// Returns about how many readers are inside.
    pub(crate) fn estimate(&self) -> i32 {
        self.words.sum() as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_counted_whatever_the_source() {
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            let readers = Readers::with_source(source).expect("an available source");
            assert!(readers.none());
            readers.enter();
            assert!(!readers.none());
            readers.admit(2);
            assert_eq!(readers.estimate(), 3, "{source}");
            (0..3).for_each(|_| readers.leave());
            assert!(readers.none(), "{source}");
        }
    }

    /// A reader that leaves between the passes, and one that comes as well.
    #[test]
    fn a_change_between_the_passes_is_noticed() {
        let changes = [(1, 0), (0, 1), (1, 1), (1000, 1000), (i64::from(u32::MAX), 3)];
        for (entries, exits) in changes {
            let change = ENTRY.wrapping_mul(entries).wrapping_add(EXIT.wrapping_mul(exits));
            assert_ne!(change, 0, "{entries} entries, {exits} exits");
        }
    }

    #[test]
    fn a_reader_may_leave_on_another_thread() {
        let readers = Readers::new();
        std::thread::scope(|scope| {
            scope.spawn(|| readers.enter()).join().expect("no panic");
            assert!(!readers.none());
            scope.spawn(|| readers.leave()).join().expect("no panic");
        });
        assert!(readers.none());
    }
}
