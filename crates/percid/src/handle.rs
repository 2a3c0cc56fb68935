//! The word that every structure holds: where its memory is and which source it uses.
//!
//! A handle is a constant at first and claims its memory at first use, so it may be a `static`. The
//! word is then the block's address, and its lowest bits mark the source: the fast paths test one
//! bit each and make the mark part of the displacement of their memory operands. Marks appear after
//! the source was prepared, so a thread that sees a mark (by an acquiring load) sees what that
//! source's sections read.

use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use crate::arena::Block;
use crate::critical::{KERNEL, MARKS, TABLE};
use crate::id::{Source, Unavailable, choice, fence};
use crate::sys::preserving_errno;

/// The mark of the atomic source, beside those that sections know.
const ATOMIC: usize = 4;

const _: () = assert!(TABLE | KERNEL | ATOMIC == MARKS);

/// Marks an object without memory: the highest bit, which is clear in every user-space address.
const INLINE: usize = 1 << 63;

/// The word of a handle.
#[repr(transparent)]
pub(crate) struct Handle {
    word: AtomicUsize,
}

/// What the word means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    /// Not used yet.
    Unclaimed,
    /// It has memory, and uses this source; `None` while the source is being chosen, when
    /// everything goes to the shared slot.
    Claimed(Block, Option<Source>),
    /// There was no memory: the word itself is a count, 60 bits of it.
    Inline(i64),
}

/// The word that the sections of a source know a block by, for slow paths.
pub(crate) fn marked(block: Block, source: Source) -> usize {
    State::Claimed(block, Some(source)).encode()
}

/// What an object needs of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// IDs and critical sections.
    Sections,
    /// Besides, the fence that aborts critical sections, for those who take memory away from IDs.
    Fence,
}

impl State {
    fn decode(word: usize) -> State {
        if word & INLINE != 0 {
            // The count lies in bits 3 to 62: shift the mark out at the top, then the marks below.
            return State::Inline((word << 1) as i64 >> 4);
        }
        let source = match word & MARKS {
            KERNEL => Some(Source::Kernel),
            TABLE => Some(Source::Table),
            ATOMIC => Some(Source::Atomic),
            _ => None,
        };
        if word == 0 { State::Unclaimed } else { State::Claimed(Block(word & !MARKS), source) }
    }

    fn encode(self) -> usize {
        match self {
            State::Unclaimed => 0,
            State::Claimed(block, None) => block.0,
            State::Claimed(block, Some(Source::Kernel)) => block.0 | KERNEL,
            State::Claimed(block, Some(Source::Table)) => block.0 | TABLE,
            State::Claimed(block, Some(Source::Atomic)) => block.0 | ATOMIC,
            State::Inline(count) => INLINE | ((count as usize) << 4 >> 1),
        }
    }
}

impl Handle {
    /// A handle that was never used.
    pub(crate) const fn new() -> Handle {
        Handle { word: AtomicUsize::new(0) }
    }

    /// A handle to `bytes` bytes per ID that uses `source`.
    ///
    /// # Errors
    ///
    /// Why the source cannot be used.
    pub(crate) fn with_source(
        source: Source,
        needs: Needs,
        bytes: usize,
    ) -> Result<Handle, Unavailable> {
        source.prepare()?;
        preserving_errno(|| {
            if needs == Needs::Fence && source != Source::Atomic {
                fence::prepare()?;
            }
            let block = Block::claim(bytes).ok_or(Unavailable::NoMemory)?;
            let word = State::Claimed(block, Some(source)).encode();
            Ok(Handle { word: AtomicUsize::new(word) })
        })
    }

    /// The word, for a fast path.
    #[inline(always)]
    pub(crate) fn word(&self) -> usize {
        // Acquire: a thread that sees the mark of a source sees what its sections read.
        self.word.load(Acquire)
    }

    /// The block, if the object uses the atomic source: the short way of its slow paths, which are
    /// all it has.
    #[inline(always)]
    pub(crate) fn atomic_block(&self) -> Option<Block> {
        let word = self.word();
        (word & ATOMIC != 0).then(|| Block(word - ATOMIC))
    }

    /// What the word means now.
    pub(crate) fn state(&self) -> State {
        State::decode(self.word())
    }

    /// Claims memory and settles the source as far as that is possible now: what is returned is
    /// `Claimed` or `Inline`. To be called with `errno` preserved.
    #[cold]
    pub(crate) fn settle(&self, needs: Needs, bytes: usize) -> State {
        loop {
            let seen = self.state();
            let next = match seen {
                State::Unclaimed => match Block::claim(bytes) {
                    Some(block) => State::Claimed(block, None),
                    None => State::Inline(0),
                },
                State::Claimed(block, None) => match choice::get() {
                    Some(choice) => State::Claimed(block, Some(fitting(choice.source, needs))),
                    None => return seen,
                },
                settled => return settled,
            };
            // A failed exchange means that another thread took this step; a block that was claimed
            // for nothing goes back.
            if !self.replace(seen, next) {
                if let (State::Unclaimed, State::Claimed(block, _)) = (seen, next) {
                    // SAFETY: the exchange failed, so no other thread has seen this block.
                    unsafe { block.release(bytes) };
                }
            }
        }
    }

    /// Takes a step from one state to another, unless another thread was faster.
    pub(crate) fn replace(&self, seen: State, next: State) -> bool {
        self.word.compare_exchange(seen.encode(), next.encode(), AcqRel, Relaxed).is_ok()
    }

    /// Adds to the count of an object without memory.
    pub(crate) fn count_inline(&self, n: i64) {
        while let seen @ State::Inline(count) = self.state() {
            if self.replace(seen, State::Inline(count.wrapping_add(n))) {
                return;
            }
        }
    }

    /// Gives the memory back.
    ///
    /// # Safety
    ///
    /// No operation on the object is running or will run; its size was `bytes`.
    pub(crate) unsafe fn release(&mut self, bytes: usize) {
        if let State::Claimed(block, _) = self.state() {
            // SAFETY: by contract, and the word that names the block goes.
            unsafe { block.release(bytes) };
        }
        *self.word.get_mut() = 0;
    }
}

/// The process's source, or the one without IDs where the fence is needed and refused.
fn fitting(source: Source, needs: Needs) -> Source {
    let fenced = needs == Needs::Sections || source == Source::Atomic || fence::prepare().is_ok();
    if fenced { source } else { Source::Atomic }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_round_trip() {
        for source in [None, Some(Source::Kernel), Some(Source::Table), Some(Source::Atomic)] {
            let word = State::Claimed(Block(0x7fff_ffff_fff8), source).encode();
            let State::Claimed(block, decoded) = State::decode(word) else { panic!("{word:x}") };
            assert_eq!((block.0, decoded), (0x7fff_ffff_fff8, source));
        }
        for count in [0, 1, -1, 1 << 58, -(1 << 58)] {
            let word = State::Inline(count).encode();
            assert_eq!(word & MARKS, 0, "the fast path must not take a count for an address");
            let State::Inline(decoded) = State::decode(word) else { panic!("{word:x}") };
            assert_eq!(decoded, count);
        }
    }
}
