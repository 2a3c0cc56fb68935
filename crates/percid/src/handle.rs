//! The word that every structure holds: where its memory is and which source it uses.
//!
//! A handle is a constant at first and claims its memory at first use, so it may be a `static`. The
//! word is then the block's address, and its lowest bits mark the source: the fast paths test one
//! bit each and make the mark part of the displacement of their memory operands. Marks appear after
//! the source was prepared, so a thread that sees a mark (by an acquiring load) sees what that
//! source's sections read.
//!
//! Under a race detector objects that hand something from thread to thread have their mark where
//! fast paths do not look (see [`race_detector`]).

mod word;

use std::sync::atomic::AtomicU64;

use crate::arena::Block;
use crate::id::{Source, Unavailable, choice, fence};
use crate::sys::{preserving_errno, race_detector};

use word::Word;
pub(crate) use word::{ATOMIC, State};

/// The memory that a word names, if it does.
#[cfg(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
))]
pub(crate) fn block_of(word: usize) -> Option<Block> {
    match State::decode(word as u64) {
        State::Claimed(block, _) => Some(block),
        State::Unclaimed | State::Inline(_) => None,
    }
}

/// The word of a handle.
#[repr(transparent)]
pub(crate) struct Handle {
    word: Word,
}

/// The word that the sections of a source know a block by, for slow paths.
pub(crate) fn marked(block: Block, source: Source) -> usize {
    State::Claimed(block, Some(source)).encode() as usize
}

/// What an object needs of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// IDs and critical sections.
    Sections,
    /// Besides, it hands from one thread to another what race detectors must know about.
    Handover,
    /// Besides, the fence that aborts critical sections, for those who take memory away from IDs.
    Fence,
}

impl Needs {
    /// Whether fast paths must not be taken.
    fn hides(self) -> bool {
        self != Needs::Sections && race_detector::is_present()
    }
}

impl Handle {
    /// A handle that was never used.
    pub(crate) const fn new() -> Handle {
        Handle { word: Word { value: AtomicU64::new(0) } }
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
            let state = State::Claimed(block, Some(source));
            let word = if needs.hides() { state.encode_hidden() } else { state.encode() };
            Ok(Handle { word: Word { value: AtomicU64::new(word) } })
        })
    }

    /// The word, for a fast path: as much of it as an address has, with the marks that fast paths
    /// look for.
    #[inline(always)]
    pub(crate) fn word(&self) -> usize {
        self.word.get() as usize
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
        self.word.state()
    }

    /// Claims memory and settles the source as far as that is possible now: what is returned is
    /// `Claimed` or `Inline`. To be called with `errno` preserved.
    #[cold]
    pub(crate) fn settle(&self, needs: Needs, bytes: usize) -> State {
        self.word.settle(
            || Block::claim(bytes),
            // SAFETY: it was claimed with this size, and no other thread has seen it.
            |block| _ = unsafe { block.release(bytes) },
            || choice::get().map(|choice| fitting(choice.source, needs)),
            || needs.hides(),
        )
    }

    /// Takes a step from one state to another, unless another thread was faster.
    pub(crate) fn replace(&self, seen: State, next: State) -> bool {
        self.word.replace(seen, next)
    }

    /// Adds to the count of an object without memory.
    pub(crate) fn count_inline(&self, n: i64) {
        self.word.count_inline(n);
    }

    /// Gives the memory back. `false` if a copy of the handle has done so before: C programs can
    /// make one.
    ///
    /// # Safety
    ///
    /// No operation on the object is running or will run; its size was `bytes`.
    pub(crate) unsafe fn release(&mut self, bytes: usize) -> bool {
        let seen = self.state();
        *self.word.value.get_mut() = 0;
        match seen {
            // SAFETY: by contract, and the word that names the block is gone.
            State::Claimed(block, _) => unsafe { block.release(bytes) },
            State::Unclaimed | State::Inline(_) => true,
        }
    }
}

/// The process's source, or the one without IDs where the fence is needed and refused.
fn fitting(source: Source, needs: Needs) -> Source {
    let fenced = needs != Needs::Fence || source == Source::Atomic || fence::prepare().is_ok();
    if fenced { source } else { Source::Atomic }
}
