//! Seizing a shard from the CPU that updates it, for visitors of the shards of all IDs.
//!
//! # Protocol
//!
//! The first word of a shard determines which thread may touch the rest. A critical section commits
//! to that word and to nothing else, and only if the word has an expected value; no section expects
//! a word with [`SEIZED`]. A visitor *seizes* a shard in these steps:
//!
//! 1. exchange the word `w` for `w | SEIZED`;
//! 2. fence all CPUs;
//! 3. confirm: the shard belongs to the visitor if the word is still `w | SEIZED`. If it is not,
//!    start again.
//!
//! The visitor returns the shard by storing a word without [`SEIZED`]. One thread at a time visits
//! a structure ([`visit_lock`](crate::visit_lock)).
//!
//! # Proof
//!
//! A section that read the word before the exchange may commit after it, since it does not detect
//! the exchange. Then it overwrites the mark. But it commits before the fence returns, or is
//! aborted. So at the time of the confirmation there is no such section any more, and a section
//! that starts later finds the mark and exits. If the mark is still there, no section has committed
//! since the exchange, no section is in flight that could, and the contents of the shard match the
//! word. The fence also makes everything that earlier sections wrote visible to the visitor. Two
//! visitors at the same time could confirm each other's mark, so there is one at a time.
//!
//! An owner that is not a section (a thread that activates a shard, every user of the atomic
//! source) has stored its own word, which no section expects either. A visitor waits for it or
//! skips the shard. The owner returns the shard by a plain releasing store. That store cannot
//! overwrite a visitor's mark, since visitors exchange only words of shards without an owner.
//!
//! Closures own shards for a long time, which would make a visitor start again repeatedly:
//! [`local`](crate::local) closes such shards instead.
//!
//! With the atomic source there are no sections: every user exchanges the word, so the exchange
//! alone seizes the shard. `verify/models` explores all of this, and the faults that each step
//! prevents.
//!
//! # Purpose of the memory orders
//!
//! The exchange that seizes acquires, and the store that returns the shard releases: so every owner
//! sees the changes of the earlier owners. Loading the word needs no order, since the exchange
//! comes after it. Nor does the confirmation, since the effects of sections are visible when the
//! fence returns. Removing a mark needs none: the shard was not touched, and the exchange continues
//! the release sequence of the word's last owner. `verify/loom` tests every interleaving of the
//! exchanges.

use crate::backoff::Backoff;
use crate::id::fence;
use crate::id::set::ids;
use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The mark in the highest bit: no word that a section expects is negative.
pub(crate) const SEIZED: i64 = i64::MIN;

/// A visitor's decision about a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Seize the shard.
    Seize,
    /// Skip the shard: it has nothing for the visitor.
    Pass,
    /// Try again later: another thread owns it.
    Wait,
}

/// A shard that the visitor owns, and that is returned when the guard is dropped.
#[derive(Debug)]
pub(crate) struct Seized<'c> {
    word: &'c AtomicI64,
    /// The word that returns the shard.
    pub(crate) value: i64,
}

impl Seized<'_> {
    /// Returns the shard after `announce` has returned: no other thread works on it before.
    pub(crate) fn give_back_after(self, announce: impl FnOnce()) {
        announce();
        drop(self);
    }
}

/// Tries to own a shard by the word `own` of the caller, which no section and no visitor expects.
/// Returns `true` if it did.
pub(crate) fn claim(word: &AtomicI64, value: i64, own: i64) -> bool {
    word.compare_exchange(value, own, Acquire, Relaxed).is_ok()
}

/// Returns the guard of a shard that the calling thread owns by its own word, and will return as
/// `value`.
pub(crate) fn owned(word: &AtomicI64, value: i64) -> Seized<'_> {
    Seized { word, value }
}

impl Drop for Seized<'_> {
    fn drop(&mut self) {
        self.word.store(self.value, Release);
    }
}

/// Tries to own a shard without a fence: for the atomic source, whose users all do so.
pub(crate) fn exchange(word: &AtomicI64, value: i64) -> Option<Seized<'_>> {
    word.compare_exchange(value, value | SEIZED, Acquire, Relaxed).ok()?;
    Some(Seized { word, value })
}

/// A visit of the shards of up to 64 IDs. Returns all shards when dropped.
///
/// It returns one shard after the other instead of calling a function with each. So no frame of
/// percid is on the stack while a caller's function uses the contents: that function may end its
/// thread, or jump.
#[derive(Debug)]
pub(crate) struct Visit<'c> {
    wanted: u64,
    sections: bool,
    marked: Marked<'c>,
    backoff: Backoff,
}

impl<'c> Visit<'c> {
    /// Creates a visit of the IDs that are the bits of `wanted`. `sections` is `true` if critical
    /// sections work on their shards.
    pub(crate) fn new(wanted: u64, sections: bool) -> Visit<'c> {
        let marked = Marked { words: [None; 64], bits: 0 };
        Visit { wanted, sections, marked, backoff: Backoff::default() }
    }

    /// Returns the next shard; the one before must have been returned. Waits for owners if `judge`
    /// decides so, but not forever. It skips a shard that a thread of the parent owned at the time
    /// of a fork, and all shards if the kernel refuses the fence.
    pub(crate) fn next(
        &mut self,
        word: impl Fn(u32) -> &'c AtomicI64,
        judge: impl Fn(i64) -> Verdict,
    ) -> Option<(u32, Seized<'c>)> {
        loop {
            if let Some((bit, seized)) = self.marked.confirm_next() {
                self.wanted &= !(1 << bit);
                return Some((bit, seized));
            }
            if self.wanted == 0 {
                return None;
            }
            self.mark_wanted(&word, &judge);
            if self.marked.bits == 0 {
                if self.backoff.is_exhausted() {
                    self.wanted = 0;
                    return None;
                }
                self.backoff.wait();
                continue;
            }
            if self.sections && fence::all().is_err() {
                self.marked.take_away();
                self.wanted = 0;
                return None;
            }
        }
    }

    fn mark_wanted(&mut self, word: impl Fn(u32) -> &'c AtomicI64, judge: impl Fn(i64) -> Verdict) {
        for bit in ids(0, self.wanted) {
            let word = word(bit);
            let value = word.load(Relaxed);
            match judge(value) {
                Verdict::Seize => self.marked.mark(bit, word, value),
                Verdict::Pass => self.wanted &= !(1 << bit),
                Verdict::Wait => {}
            }
        }
    }
}

/// Words with the visitor's mark that are not confirmed yet. Removes the marks when dropped.
#[derive(Debug)]
struct Marked<'c> {
    /// The words and their values before the mark.
    words: [Option<(&'c AtomicI64, i64)>; 64],
    bits: u64,
}

impl<'c> Marked<'c> {
    fn mark(&mut self, bit: u32, word: &'c AtomicI64, value: i64) {
        if word.compare_exchange(value, value | SEIZED, Acquire, Relaxed).is_ok() {
            self.words[bit as usize] = Some((word, value));
            self.bits |= 1 << bit;
        }
    }

    fn next(&mut self) -> Option<(u32, &'c AtomicI64, i64)> {
        let bit = (self.bits != 0).then(|| self.bits.trailing_zeros())?;
        self.bits &= self.bits - 1;
        let (word, value) = self.words[bit as usize]?;
        Some((bit, word, value))
    }

    /// Returns the next shard whose mark has stayed. The others have lost theirs, and will be
    /// marked again.
    fn confirm_next(&mut self) -> Option<(u32, Seized<'c>)> {
        while let Some((bit, word, value)) = self.next() {
            if word.load(Relaxed) == value | SEIZED {
                return Some((bit, Seized { word, value }));
            }
        }
        None
    }

    fn take_away(&mut self) {
        while let Some((_, word, value)) = self.next() {
            // If a section has overwritten the mark, there is none to remove.
            let _ = word.compare_exchange(value | SEIZED, value, Relaxed, Relaxed);
        }
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.take_away();
    }
}
