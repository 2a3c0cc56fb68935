//! The slow path of an operation: first use, no ID, an aborted section, a shard that is held.

use std::ops::ControlFlow;
use std::ptr::NonNull;

use super::PerId;
use super::make::sealed::Make;
use super::shard::{Extra, Hold, NONE, READY, Shard, making, shard_at};
use crate::arena::Block;
use crate::critical::by_mark;
use crate::fence;
use crate::handle::{self, Needs, State};
use crate::id::Source;
use crate::push_list;
use crate::retry::retry;
use crate::sys::{memory, preserving_errno, race_detector};

impl<T: Send + Sync, F: Make<T>> PerId<T, F> {
    /// Does an operation by its section, or on a shard that the thread holds: its ID's with the
    /// atomic source, or an extra one. Returns `None` if there is no memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn operate_slowly<'p, R>(
        &'p self,
        section: impl Fn(usize) -> Option<R>,
        held: impl Fn(&'p T) -> R,
    ) -> Option<R> {
        if let Some(hold) = self.handle.atomic_block().and_then(hold_at_hint) {
            return Some(held(value(&hold)));
        }
        preserving_errno(|| {
            let by_source = match self.handle.settle(Needs::Fence, self.make.shard_bytes()) {
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

    /// Does an operation on a value that belongs to no ID: one that is no section, because it takes
    /// long. Returns `None` if there is no memory.
    pub(crate) fn operate_without_id<'p, R>(&'p self, held: impl FnOnce(&'p T) -> R) -> Option<R> {
        preserving_errno(|| Some(held(value(&self.hold_extra()?))))
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
                    self.fill(unsafe { shard_at::<T>(made) });
                }
            }
            _ => return None,
        }
        Some(ControlFlow::Continue(()))
    }

    /// Makes the value of a shard of this object, as the only thread that has access to it.
    fn fill(&self, shard: &Shard<T>) {
        // SAFETY: the value is part of a shard that was claimed or mapped with the size of the
        // maker's, and only this thread has access to it until the state says that there is one.
        shard.fill(|value| unsafe { self.make.make_at(value) });
    }

    /// Returns the value of an ID, which is made if there is none: for threads that have stolen an
    /// ID.
    // #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
    #[cfg(feature = "testing")]
    pub(crate) fn get_or_make(&self, id: u32) -> Option<&T> {
        let State::Claimed(block, Some(_)) = self.handle.state() else { return None };
        // SAFETY: the block of this object; the memory of an ID that was stolen is open.
        let shard = unsafe { shard_at::<T>(block.of_id(id)) };
        if shard.state() == NONE && shard.try_make() {
            self.fill(shard);
        }
        shard.value()
    }

    /// Makes the value of the thread's hint, if there is none.
    fn make_at_hint(&self, block: Block) -> Option<()> {
        // SAFETY: the block of this object; the memory of the hint is open.
        let shard = unsafe { shard_at::<T>(block.of_id(Source::Atomic.ensure_id_hint()?)) };
        if shard.try_make() {
            self.fill(shard);
        }
        Some(())
    }

    /// Holds an extra shard that no thread holds, or a new one.
    fn hold_extra(&self) -> Option<Hold<'_, T>> {
        let free = self.extras().find_map(Shard::try_hold);
        free.or_else(|| self.new_extra())
    }

    fn new_extra(&self) -> Option<Hold<'_, T>> {
        let new = NewExtra::map(Extra::<T>::bytes(self.make.extra_bytes()))?;
        let extra = new.memory.cast::<Extra<T>>();
        // SAFETY: zeros are a shard without a value, and the mapping is large enough. Extras are
        // not moved or unmapped until the object is dropped, unless the maker panics here.
        let shard = unsafe { &(*extra.as_ptr()).shard };
        self.fill(shard);
        let hold = shard.try_hold()?;
        std::mem::forget(new);
        // SAFETY: no other thread has access to the extra before it is pushed.
        let link = |next| unsafe { (&raw mut (*extra.as_ptr()).link.next).write(next) };
        push_list::push(&self.extras, extra.as_ptr(), link);
        Some(hold)
    }
}

/// The memory of an extra that no other thread knows yet, unmapped when this is dropped.
struct NewExtra {
    memory: NonNull<u8>,
    bytes: usize,
}

impl NewExtra {
    fn map(bytes: usize) -> Option<NewExtra> {
        Some(NewExtra { memory: memory::map(bytes)?, bytes })
    }
}

impl Drop for NewExtra {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it.
        unsafe { memory::unmap(self.memory, self.bytes) };
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

/// Returns the value of a shard that the calling thread holds, for an operation. The fence is for a
/// thread that waits for operations: see [`settle`](super::settle).
fn value<'p, T>(hold: &Hold<'p, T>) -> &'p T {
    fence::light();
    // SAFETY: a shard that is held has a value.
    unsafe { hold.shard.value_unchecked() }
}
