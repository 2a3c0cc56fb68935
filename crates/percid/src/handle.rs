//! The word of every structure: the address of its memory, and its source.
//!
//! A handle is a constant at first and claims its memory at first use, so it may be a `static`. The
//! word is then the block's address, and its lowest bits mark the source: the fast paths test one
//! bit each and make the mark part of the displacement of their memory operands. Marks are set
//! after the source was prepared. So a thread that sees a mark (by an acquiring load) sees the
//! values that the sections of that source read.
//!
//! Under a race detector, objects that pass something from thread to thread have their mark at a
//! position that fast paths do not test (see [`race_detector`]).

mod word;

use std::sync::atomic::AtomicU64;

use crate::arena::Block;
use crate::id::{Source, SourceError, fence, selection};
use crate::sys::{preserving_errno, race_detector};

use word::Word;
pub(crate) use word::{ATOMIC, State};

/// Returns the memory that a word names, if any.
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

/// Returns the word that the sections of a source use for a block, for slow paths.
pub(crate) fn marked(block: Block, source: Source) -> usize {
    State::Claimed(block, Some(source)).encode() as usize
}

/// The requirements of an object on its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// IDs and critical sections.
    Sections,
    /// In addition, the object passes something from one thread to another that must be announced
    /// to race detectors.
    Handover,
    /// In addition, it needs the fence that aborts critical sections, to take memory away from IDs.
    Fence,
}

impl Needs {
    /// Returns `true` if fast paths must not be taken.
    fn hides(self) -> bool {
        self != Needs::Sections && race_detector::is_present()
    }
}

impl Handle {
    /// Creates a handle that was never used.
    pub(crate) const fn new() -> Handle {
        Handle { word: Word { value: AtomicU64::new(0) } }
    }

    /// Creates a handle to `bytes` bytes per ID that uses `source`.
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub(crate) fn with_source(
        source: Source,
        needs: Needs,
        bytes: usize,
    ) -> Result<Handle, SourceError> {
        source.prepare()?;
        preserving_errno(|| {
            if needs == Needs::Fence && source != Source::Atomic {
                fence::prepare()?;
            }
            let block = Block::claim(bytes).ok_or(SourceError::NoMemory)?;
            let state = State::Claimed(block, Some(source));
            let word = if needs.hides() { state.encode_hidden() } else { state.encode() };
            Ok(Handle { word: Word { value: AtomicU64::new(word) } })
        })
    }

    /// Returns the word for a fast path: its lower bits, as many as an address has, with the marks
    /// that fast paths test.
    #[inline(always)]
    pub(crate) fn word(&self) -> usize {
        self.word.get() as usize
    }

    /// Returns the block, if the object uses the atomic source: a short cut for slow paths, the
    /// only paths of such objects.
    #[inline(always)]
    pub(crate) fn atomic_block(&self) -> Option<Block> {
        let word = self.word();
        (word & ATOMIC != 0).then(|| Block(word - ATOMIC))
    }

    /// Returns the current state of the object.
    pub(crate) fn state(&self) -> State {
        self.word.state()
    }

    /// Claims memory and selects the source, if possible now. Returns `Claimed` or `Inline`. The
    /// caller must preserve `errno`.
    #[cold]
    pub(crate) fn settle(&self, needs: Needs, bytes: usize) -> State {
        self.word.settle(
            || Block::claim(bytes),
            // SAFETY: the block was claimed with this size, and no other thread has access to it.
            |block| _ = unsafe { block.release(bytes) },
            || selection::get().map(|choice| fitting(choice.source, needs)),
            || needs.hides(),
        )
    }

    /// Changes the state from `seen` to `next`, unless another thread was faster.
    pub(crate) fn replace(&self, seen: State, next: State) -> bool {
        self.word.replace(seen, next)
    }

    /// Adds to the count of an object without memory.
    pub(crate) fn count_inline(&self, n: i64) {
        self.word.count_inline(n);
    }

    /// Frees the memory. Returns `false` if a copy of the handle has done so before: C programs can
    /// make one.
    ///
    /// # Safety
    ///
    /// No operation on the object is running or will run; its size was `bytes`.
    pub(crate) unsafe fn release(&mut self, bytes: usize) -> bool {
        let seen = self.state();
        *self.word.value.get_mut() = 0;
        match seen {
            // SAFETY: the caller guarantees that no operation uses the object and that its size is
            // `bytes`; the word that names the block is gone.
            State::Claimed(block, _) => unsafe { block.release(bytes) },
            State::Unclaimed | State::Inline(_) => true,
        }
    }
}

/// Returns the process's source, or the atomic source if the fence is needed and refused.
fn fitting(source: Source, needs: Needs) -> Source {
    let fenced = needs != Needs::Fence || source == Source::Atomic || fence::prepare().is_ok();
    if fenced { source } else { Source::Atomic }
}
