//! Taking a block away from the CPU that works on it, for those who visit the shards of all IDs.
//!
//! # Protocol
//!
//! The first word of a shard says who may touch the rest. A critical section commits to that word
//! and to nothing else, and only if it finds there what it expects; with [`SEIZED`] in it the word
//! suits no section. A visitor *seizes* a shard like this:
//!
//! 1. exchange the word `w` for `w | SEIZED`;
//! 2. fence all CPUs;
//! 3. confirm: the shard is the visitor's if the word is still `w | SEIZED`. If it is not, start
//!    again.
//!
//! and gives it back by storing a word without [`SEIZED`]. One thread at a time visits a structure
//! ([`visit_lock`](crate::visit_lock)).
//!
//! # Proof
//!
//! A section that read the word before the exchange may commit after it, since it does not know
//! about it. Then it overwrites the mark. But it commits before the fence returns, or is aborted:
//! so at the time of the confirmation there is no such section any more, and a section that starts
//! later finds the mark and leaves. If the mark is still there, no section has committed since the
//! exchange, no section is in flight that could, and what the shard holds is what the word says.
//! The fence also makes everything that earlier sections wrote visible to the visitor. Two visitors
//! at once could confirm each other's mark, so there is one at a time.
//!
//! An owner that is no section (a thread that activates a shard, every user of the atomic source)
//! has put a word of its own there, which suits no section either. A visitor waits for it or passes
//! it by. Such a word is given back by a plain releasing store; that store cannot hit a visitor's
//! mark, since visitors exchange only words of shards without an owner.
//!
//! Shards that are owned for long, by closures, would make a visitor start again and again:
//! [`local`](crate::local) closes them instead.
//!
//! With the atomic source there are no sections: every user exchanges the word, so the exchange
//! alone is the seizure. `verify/models` explores all of this, and the faults that each step
//! prevents.
//!
//! # What the orders are for
//!
//! The exchange that seizes acquires, and the store that gives back releases: so every owner sees
//! what those before it did. Loading the word needs no order, since the exchange comes after it;
//! nor does the confirmation, since what sections did is visible when the fence returns. Taking a
//! mark away needs none: the shard was not touched, and by an exchange the word goes on passing on
//! what its last owner released. `verify/loom` tries every interleaving of the exchanges.

use crate::backoff::Backoff;
use crate::id::fence;
use crate::id::set::ids;
use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The highest bit: no word that suits a section is negative.
pub(crate) const SEIZED: i64 = i64::MIN;

/// What a visitor does about a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Seize the shard.
    Seize,
    /// There is nothing to come for.
    Pass,
    /// Another thread owns it; come again.
    Wait,
}

/// A shard that the visitor owns. Gives it back when dropped.
#[derive(Debug)]
pub(crate) struct Seized<'c> {
    word: &'c AtomicI64,
    /// What the word will be.
    pub(crate) value: i64,
}

impl Seized<'_> {
    /// Gives the shard back when `announce` has returned: no other thread works on it before.
    pub(crate) fn give_back_after(self, announce: impl FnOnce()) {
        announce();
        drop(self);
    }
}

/// Tries to own a shard by a word of the caller's, which suits no section and no visitor.
pub(crate) fn claim(word: &AtomicI64, value: i64, own: i64) -> bool {
    word.compare_exchange(value, own, Acquire, Relaxed).is_ok()
}

/// A shard that the calling thread owns by a word of its own, and will give back as `value`.
pub(crate) fn owned(word: &AtomicI64, value: i64) -> Seized<'_> {
    Seized { word, value }
}

impl Drop for Seized<'_> {
    fn drop(&mut self) {
        self.word.store(self.value, Release);
    }
}

/// Tries to own a shard without a fence: for the atomic source, in which every user does.
pub(crate) fn exchange(word: &AtomicI64, value: i64) -> Option<Seized<'_>> {
    word.compare_exchange(value, value | SEIZED, Acquire, Relaxed).ok()?;
    Some(Seized { word, value })
}

/// A visit of the shards of up to 64 IDs. Gives everything back when dropped.
///
/// It hands out one shard after the other instead of calling a function with each, so that no frame
/// of percid's is on the stack while a caller's function has what was found: that may end its
/// thread, or jump.
#[derive(Debug)]
pub(crate) struct Visit<'c> {
    wanted: u64,
    sections: bool,
    marked: Marked<'c>,
    backoff: Backoff,
}

impl<'c> Visit<'c> {
    /// A visit of the IDs that are the bits of `wanted`. `sections`: whether critical sections work
    /// on their shards.
    pub(crate) fn new(wanted: u64, sections: bool) -> Visit<'c> {
        let marked = Marked { words: [None; 64], bits: 0 };
        Visit { wanted, sections, marked, backoff: Backoff::default() }
    }

    /// The next shard, when the one before was given back. Waits for owners if `judge` says so, but
    /// not forever: a shard that a thread of the parent owned at the time of a fork is passed by,
    /// and so are all if the kernel refuses the fence.
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

/// Words that bear the visitor's mark and are not confirmed yet. Takes the marks away when dropped.
#[derive(Debug)]
struct Marked<'c> {
    /// The words and what they were.
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

    /// The next shard whose mark has stayed. The others have lost theirs, and will be marked again.
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
            // If a section has overwritten the mark there is none to take away.
            let _ = word.compare_exchange(value | SEIZED, value, Relaxed, Relaxed);
        }
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.take_away();
    }
}
