//! The slow path of an operation: first use, no ID, an aborted section, a shard that is held.

use std::ops::ControlFlow;

use super::PerId;
use super::shard::{Extra, Hold, NONE, READY, Shard, making, shard_at};
use crate::arena::Block;
use crate::critical::by_mark;
use crate::handle::{self, Needs, State};
use crate::id::Source;
use crate::push_list;
use crate::retry::retry;
use crate::sys::{memory, preserving_errno, race_detector};

impl<T: Send + Sync, F: Fn() -> T> PerId<T, F> {
    /// Does an operation by its section, or on a shard that the thread holds: its ID's with the
    /// atomic source, or an extra one. Returns `None` if there is no memory.
    #[cold]
    #[inline(never)]
    pub(super) fn operate_slowly<'p, R>(
        &'p self,
        section: impl Fn(usize) -> Option<R>,
        held: impl Fn(&'p T) -> R,
    ) -> Option<R> {
        if let Some(hold) = self.handle.atomic_block().and_then(hold_at_hint) {
            return Some(held(value(&hold)));
        }
        preserving_errno(|| {
            let by_source = match self.handle.settle(Needs::Fence, Self::BYTES) {
                State::Claimed(block, Some(Source::Atomic)) => self
                    .make_at_hint(block)
                    .and_then(|()| hold_at_hint(block))
                    .map(|hold| held(value(&hold))),
                State::Claimed(block, Some(source)) => self.by_section(block, source, section),
                State::Claimed(_, None) | State::Unclaimed | State::Inline(_) => None,
            };
            by_source.or_else(|| Some(held(value(&self.hold_extra()?))))
        })
    }

    /// Tries the section until it did the operation, a bounded number of times.
    fn by_section<R>(
        &self,
        block: Block,
        source: Source,
        section: impl Fn(usize) -> Option<R>,
    ) -> Option<R> {
        let word = handle::marked(block, source);
        let announced = || {
            race_detector::release(block.0);
            section(word).inspect(|_| race_detector::acquire(block.0))
        };
        retry(announced, || self.make_ready(block, source))
    }

    /// Makes the value of the thread's ID, if there is none. Returns `None` if the thread has no
    /// ID, or if another thread holds the shard or makes its value.
    fn make_ready<R>(&self, block: Block, source: Source) -> Option<ControlFlow<R>> {
        // SAFETY: the block of this object; the memory of the ID is open.
        let state = unsafe { shard_at::<T>(block.of_id(source.ensure_id_hint()?)) }.state();
        match state {
            READY => {}
            NONE => {
                // SAFETY: a block of shards with the mark of a source that has been prepared.
                let made = unsafe { begin_to_make(handle::marked(block, source)) };
                if made != 0 {
                    // SAFETY: a shard of this block, of the ID that the thread had then.
                    unsafe { shard_at::<T>(made) }.fill(&self.make);
                }
            }
            _ => return None,
        }
        Some(ControlFlow::Continue(()))
    }

    /// Makes the value of the thread's hint, if there is none.
    fn make_at_hint(&self, block: Block) -> Option<()> {
        // SAFETY: the block of this object; the memory of the hint is open.
        let shard = unsafe { shard_at::<T>(block.of_id(Source::Atomic.ensure_id_hint()?)) };
        if shard.try_make() {
            shard.fill(&self.make);
        }
        Some(())
    }

    /// Holds an extra shard that no thread holds, or a new one.
    fn hold_extra(&self) -> Option<Hold<'_, T>> {
        let free = self.extras().find_map(Shard::try_hold);
        free.or_else(|| self.new_extra())
    }

    fn new_extra(&self) -> Option<Hold<'_, T>> {
        let value = (self.make)();
        let extra = memory::map(size_of::<Extra<T>>())?.cast::<Extra<T>>();
        let shard = Shard::held_by_caller(value);
        // SAFETY: fresh memory, large enough and aligned to a page.
        unsafe { extra.write(Extra { shard, next: std::ptr::null_mut() }) };
        // SAFETY: no other thread has access to the extra before it is pushed.
        let link = |next| unsafe { (*extra.as_ptr()).next = next };
        push_list::push(&self.extras, extra.as_ptr(), link);
        // SAFETY: extras are not moved or unmapped until the object is dropped.
        Some(Hold { shard: unsafe { &extra.as_ref().shard } })
    }
}

/// Holds the shard of the thread's hint, if it is ready: for the atomic source.
fn hold_at_hint<'p, T>(block: Block) -> Option<Hold<'p, T>> {
    let id = Source::Atomic.ensure_id_hint()?;
    // SAFETY: the block of an object that outlives the operation; the memory of the hint is open.
    unsafe { shard_at(block.of_id(id)) }.try_hold()
}

/// Begins to make the value of the running thread's ID. Returns the address of the shard; 0 if it
/// has a value, another thread has begun, or the section was aborted.
///
/// # Safety
///
/// `word` is a block of shards with the mark of a source that has been prepared.
#[inline(never)]
unsafe fn begin_to_make(word: usize) -> usize {
    // SAFETY: the caller passes a block of shards with the mark of a prepared source. The state is
    // its first word, and also serves as the word that must be zero.
    unsafe { by_mark!(word, acquire::<0>(NONE as usize, making() as usize), else 0) }
}

/// Returns the value of a shard that the calling thread holds.
fn value<'p, T>(hold: &Hold<'p, T>) -> &'p T {
    // SAFETY: a shard that is held has a value.
    unsafe { hold.shard.value_unchecked() }
}
