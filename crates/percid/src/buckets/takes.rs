//! The mark by which readings without a lock notice that values are taken.
//!
//! # Why a reading notices a take
//!
//! The number is odd while a thread takes values: it holds the lock of the visits, so there is one
//! at a time. A reading that sees the same even number before and after belongs to one side of every
//! take:
//!
//! * If it sees a word that a take has stored, it sees the odd number, or a later one, at its second
//!   load: the fence of [`begin`](Takes::begin) precedes the word, and the reading's fence follows
//!   its load.
//! * If it sees what an update has stored in a value that was taken, the same holds. That update has
//!   seen the state of the value that the take stored behind all else, so the odd number was visible
//!   to every thread before it.
//! * If its first load sees the even number that [`end`](Takes::end) stored, it sees all stores of
//!   that take.
//!
//! The number has 32 bits. A reading would have to be interrupted during 2^31 takes, each of which
//! visits all values.

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The number of takes that have begun and of those that have ended.
#[derive(Debug)]
pub(crate) struct Takes {
    pub(crate) number: AtomicU32,
}

impl Takes {
    /// Begins to take values. The calling thread holds the lock of the visits.
    pub(crate) fn begin(&self) {
        self.number.store(self.number.load(Relaxed) | 1, Relaxed);
        fence(Release);
    }

    /// Ends it. The calling thread still holds the lock. After a fork the thread that has begun may
    /// have stayed in the parent, then the next holder of the lock ends it.
    pub(crate) fn end(&self) {
        let number = self.number.load(Relaxed);
        self.number.store(number.wrapping_add(number & 1), Release);
    }

    /// Returns `true` while values are taken.
    pub(crate) fn is_under_way(&self) -> bool {
        self.number.load(Relaxed) & 1 == 1
    }

    /// Returns the result of a reading; `None` if values were taken meanwhile.
    pub(crate) fn without<R>(&self, read: impl FnOnce() -> R) -> Option<R> {
        let before = self.number.load(Acquire);
        if before & 1 == 1 {
            return None;
        }
        let result = read();
        fence(Acquire);
        (self.number.load(Relaxed) == before).then_some(result)
    }
}
