//! The word of a handle: the current state of an object in one word. It has 64 bits, also on
//! systems whose addresses have 32.

use crate::arena::Block;
use crate::critical::{KERNEL, MARKS, TABLE};
use crate::id::Source;
use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The mark of the atomic source, in addition to those of the sections.
pub(crate) const ATOMIC: usize = 4;

const _: () = assert!(TABLE | KERNEL | ATOMIC == MARKS);

/// The position of the mark of an object without fast paths: above every user-space address, and
/// below the highest bit.
const HIDDEN: u32 = 56;

/// Marks an object without memory: the highest bit, which is clear in every user-space address.
const INLINE: u64 = 1 << 63;

/// The state of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    /// Not used yet.
    Unclaimed,
    /// It has memory, and uses this source; `None` while the source is being chosen. During that
    /// time all updates go to the shared slot.
    Claimed(Block, Option<Source>),
    /// There was no memory: the word itself is a count, 60 bits of it.
    Inline(i64),
}

impl State {
    pub(super) fn decode(word: u64) -> State {
        if word & INLINE != 0 {
            // The count lies in bits 3 to 62: shift the mark out at the top, then the marks below.
            return State::Inline((word << 1) as i64 >> 4);
        }
        let source = match (word | word >> HIDDEN) as usize & MARKS {
            KERNEL => Some(Source::Kernel),
            TABLE => Some(Source::Table),
            ATOMIC => Some(Source::Atomic),
            _ => None,
        };
        if word == 0 {
            State::Unclaimed
        } else {
            let marks = (MARKS as u64) << HIDDEN | MARKS as u64;
            State::Claimed(Block((word & !marks) as usize), source)
        }
    }

    pub(crate) fn encode(self) -> u64 {
        let (block, mark) = match self {
            State::Unclaimed => return 0,
            State::Inline(count) => return INLINE | ((count as u64) << 4 >> 1),
            State::Claimed(block, None) => (block, 0),
            State::Claimed(block, Some(Source::Kernel)) => (block, KERNEL),
            State::Claimed(block, Some(Source::Table)) => (block, TABLE),
            State::Claimed(block, Some(Source::Atomic)) => (block, ATOMIC),
        };
        (block.0 | mark) as u64
    }

    /// Returns the word like [`encode`](State::encode), but with a mark that fast paths do not
    /// find.
    pub(crate) fn encode_hidden(self) -> u64 {
        let word = self.encode();
        match self {
            State::Claimed(_, Some(Source::Kernel | Source::Table)) => {
                let marks = word & MARKS as u64;
                (word - marks) | (marks << HIDDEN)
            }
            _ => word,
        }
    }
}

/// The word of a handle.
#[repr(transparent)]
pub(crate) struct Word {
    pub(crate) value: AtomicU64,
}

impl Word {
    /// Returns the word unchanged, for a fast path.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        // Acquire: a thread that sees the mark of a source sees the values that its sections read.
        self.value.load(Acquire)
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> State {
        State::decode(self.get())
    }

    /// Takes the steps that are possible now: claims memory, and chooses the source, which is then
    /// prepared. `give_back` gets a block that no other thread has seen. If `hide` returns `true`,
    /// fast paths do not find the source.
    pub(crate) fn settle(
        &self,
        claim: impl Fn() -> Option<Block>,
        give_back: impl Fn(Block),
        choose: impl Fn() -> Option<Source>,
        hide: impl Fn() -> bool,
    ) -> State {
        loop {
            let seen = self.state();
            let next = match seen {
                State::Unclaimed => match claim() {
                    Some(block) => State::Claimed(block, None),
                    None => State::Inline(0),
                },
                State::Claimed(block, None) => match choose() {
                    Some(source) => State::Claimed(block, Some(source)),
                    None => return seen,
                },
                settled => return settled,
            };
            // A failed exchange means that another thread took this step; then a block that was
            // claimed in vain is freed.
            let word = if hide() { next.encode_hidden() } else { next.encode() };
            if !self.exchange(seen.encode(), word) {
                if let (State::Unclaimed, State::Claimed(block, _)) = (seen, next) {
                    give_back(block);
                }
            }
        }
    }

    /// Changes the state from `seen` to `next`, unless another thread was faster.
    pub(crate) fn replace(&self, seen: State, next: State) -> bool {
        self.exchange(seen.encode(), next.encode())
    }

    fn exchange(&self, seen: u64, next: u64) -> bool {
        // Release: see `get`. The loads of the state before this were acquiring.
        self.value.compare_exchange(seen, next, Release, Relaxed).is_ok()
    }

    /// Adds to the count of an object without memory.
    pub(crate) fn count_inline(&self, n: i64) {
        while let seen @ State::Inline(count) = self.state() {
            if self.replace(seen, State::Inline(count.wrapping_add(n))) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The highest address of user space, or one with more bits than a signed number has.
    const ADDRESS: usize = (0x7fff_ffff_ffff_u64 & usize::MAX as u64) as usize - 7;

    #[test]
    fn words_survive_a_round_trip() {
        for source in [None, Some(Source::Kernel), Some(Source::Table), Some(Source::Atomic)] {
            let word = State::Claimed(Block(ADDRESS), source).encode();
            let State::Claimed(block, decoded) = State::decode(word) else { panic!("{word:x}") };
            assert_eq!((block.0, decoded), (ADDRESS, source));
            let hidden = State::Claimed(block, source).encode_hidden();
            assert_eq!(hidden as usize & (KERNEL | TABLE), 0, "a fast path must not find a source");
            let State::Claimed(block, decoded) = State::decode(hidden) else { panic!("{word:x}") };
            assert_eq!((block.0, decoded), (ADDRESS, source));
        }
        for count in [0, 1, -1, 1 << 58, -(1 << 58)] {
            let word = State::Inline(count).encode();
            assert_eq!(word as usize & MARKS, 0, "a fast path must not take it for an address");
            let State::Inline(decoded) = State::decode(word) else { panic!("{word:x}") };
            assert_eq!(decoded, count);
        }
    }
}
