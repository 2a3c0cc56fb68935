//! The slow path of updates that a section does in one step, and that atomic instructions do
//! without a section: first use, no ID, an aborted section.

use crate::arena::Block;
pub(crate) use crate::float_word::float;
use crate::float_word::float_bits;
use crate::handle::{self, Handle, Needs, State};
use crate::id::{self, Source};
use crate::retry::retry;
use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Relaxed, Release},
};
use crate::sys::preserving_errno;
use std::ops::ControlFlow;

/// An update of a block.
pub(crate) trait Update: Copy {
    /// Runs the section. Returns `true` if it did the update.
    ///
    /// # Safety
    ///
    /// `word` is the address of a block of the update's object in the shared slot, plus the mark of
    /// a source that has been prepared.
    unsafe fn by_section(self, word: usize) -> bool;

    /// Updates a shard that several threads may use; `word` returns the words of the shard by their
    /// offset.
    fn atomically(self, word: impl Fn(usize) -> &'static AtomicI64);

    /// Returns the number that is counted if the object has no memory.
    fn times(self) -> i64;
}

/// Updates an object of `bytes` bytes.
pub(crate) fn slowly<U: Update>(handle: &Handle, bytes: usize, update: U) {
    if let Some(block) = handle.atomic_block() {
        return at_hint(block, update);
    }
    preserving_errno(|| match handle.settle(Needs::Sections, bytes) {
        State::Claimed(block, source) => by_source(block, source, update),
        State::Inline(_) | State::Unclaimed => handle.count_inline(update.times()),
    });
}

/// Updates through the source with a bounded number of tries, then in the shared slot.
fn by_source(block: Block, source: Option<Source>, update: impl Update) {
    match source {
        None => in_shared(block, update),
        Some(Source::Atomic) => at_hint(block, update),
        Some(source) => {
            let word = handle::marked(block, source);
            let section = || try_once(word, update).then_some(());
            let get_id = || source.ensure_id().then_some(ControlFlow::Continue(()));
            retry(section, get_id).unwrap_or_else(|| in_shared(block, update));
        }
    }
}

/// Tries the section once. Out of line, so that an unrolled loop does not repeat the sections.
#[inline(never)]
fn try_once(word: usize, update: impl Update) -> bool {
    // SAFETY: the word is that of a block that was allocated for the source whose mark it has.
    unsafe { update.by_section(word) }
}

/// Updates the copy that the calling thread's hint leads to.
fn at_hint(block: Block, update: impl Update) {
    match id::atomic::open_copy() {
        Some(copy) => update.atomically(|offset| block.at(offset).copy(copy)),
        None => in_shared(block, update),
    }
}

fn in_shared(block: Block, update: impl Update) {
    update.atomically(|offset| block.at(offset).shared());
}

/// Adds to a word that holds the bits of a float.
pub(crate) fn add_float(word: &AtomicI64, n: f64) {
    let add = |bits: i64| Some(float_bits(float(bits) + n));
    // This cannot fail: `add` always returns a new value.
    let _ = word.fetch_update(Release, Relaxed, add);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_addition_to_a_shared_word_is_lost() {
        const ADDS: usize = if cfg!(miri) { 100 } else { 100_000 };
        let word = AtomicI64::new(float_bits(0.0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..ADDS).for_each(|_| add_float(&word, 0.5)));
            }
        });
        assert_eq!(float(word.load(Relaxed)), 2.0 * ADDS as f64);
    }
}
