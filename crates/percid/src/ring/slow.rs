//! The slow path of an append: retries, room, and the shared shard.

use std::ops::ControlFlow;

use super::append_error::AppendError;
use super::object::{Overflow, Ring};
use super::shard::Shard;
use crate::arena::Block;
use crate::critical::by_mark;
use crate::critical::ring::Append;
use crate::handle::{self, Needs, State};
use crate::id::Source;
use crate::retry::retry;
use crate::sys::{preserving_errno, race_detector};

/// The result of an append.
pub(super) type Appended = Result<(), AppendError>;

impl Ring {
    /// Counts a lost record.
    #[cold]
    #[inline(never)]
    pub(super) fn lose(&self, why: AppendError) -> Appended {
        self.dropped.increment();
        Err(why)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn append_slowly(&self, request: &Append) -> Appended {
        race_detector::release(std::ptr::from_ref(self).addr());
        let atomic = self.handle.atomic_block();
        let appended = match atomic.and_then(|block| self.append_at_hint(block, request)) {
            Some(appended) => appended,
            None if self.is_full_here(request) => Err(AppendError::Full),
            None => self.try_slowly(request),
        };
        appended.or_else(|why| self.lose(why))
    }

    /// Returns `true` if the record must be dropped, for want of room in the ring of the thread's
    /// ID: producers that are faster than the consumer need no more than a look.
    fn is_full_here(&self, request: &Append) -> bool {
        let State::Claimed(block, Some(source)) = self.handle.state() else { return false };
        let id = source.hint().filter(|&id| id < source.id_count());
        self.overflow == Overflow::DropNewest
            && id.is_some_and(|id| !self.shard_at(block.of_id(id)).has_room(request))
    }

    #[inline(never)]
    fn try_slowly(&self, request: &Append) -> Appended {
        preserving_errno(|| {
            let State::Claimed(block, source) = self.handle.settle(Needs::Handover, self.bytes())
            else {
                return Err(AppendError::NoMemory);
            };
            let appended = match source {
                None => None,
                Some(Source::Atomic) => self.append_at_hint(block, request),
                Some(source) => self.append_as(block, source, request),
            };
            appended
                .or_else(|| self.append_locked(self.shard_at(block.0), request))
                .unwrap_or(Err(AppendError::Busy))
        })
    }

    /// Appends through a source that has sections; `None` if the thread currently has no ID.
    fn append_as(&self, block: Block, source: Source, request: &Append) -> Option<Appended> {
        let word = handle::marked(block, source);
        let make_room = || {
            let shard = self.shard_at(block.of_id(source.ensure_id_hint()?));
            if !shard.has_room(request) {
                if self.overflow == Overflow::DropNewest {
                    return Some(ControlFlow::Break(Err(AppendError::Full)));
                }
                // The section that writes into the freed part orders itself after the discard.
                discard(word, shard.worth_keeping(request), request.mask);
            }
            Some(ControlFlow::Continue(()))
        };
        retry(|| try_append(word, request).then_some(Ok(())), make_room)
    }

    fn append_at_hint(&self, block: Block, request: &Append) -> Option<Appended> {
        let id = Source::Atomic.ensure_id_hint()?;
        self.append_locked(self.shard_at(block.of_id(id)), request)
    }

    /// Appends to a shard on which no section works; `None` if another thread is using it.
    pub(super) fn append_locked(&self, shard: Shard, request: &Append) -> Option<Appended> {
        let overwrite = self.overflow == Overflow::OverwriteOldest;
        let appended = shard.append_locked(request, overwrite)?;
        Some(if appended { Ok(()) } else { Err(AppendError::Full) })
    }
}

/// Tries the section `append` once. Out of line, so that an unrolled loop does not repeat the
/// sections.
#[inline(never)]
fn try_append(word: usize, request: &Append) -> bool {
    // SAFETY: the block of a ring that was claimed for the source whose mark the word has; the
    // request is for this ring.
    unsafe { by_mark!(word, append(request), else false) }
}

/// Runs the section `discard` once, out of line like [`try_append`].
#[inline(never)]
fn discard(word: usize, keep: u64, mask: u64) {
    // SAFETY: the block of a ring that was claimed for the source whose mark the word has; `mask`
    // is the ring's capacity less one.
    unsafe { by_mark!(word, discard(keep, mask), else false) };
}
