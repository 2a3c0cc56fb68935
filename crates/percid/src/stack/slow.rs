//! The slow paths of a push and a pop: activation, retries, and batches to and from the shared
//! list.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::Stack;
use super::chunks::{Chunk, ITEMS};
use super::item::{Item, announce_popped, announce_push};
use super::shard::{ACTIVATING, EMPTY, acquire_at_hint, own_at_hint};
use crate::arena::{Block, STRIDE, word};
use crate::critical::by_mark;
use crate::handle::{self, Needs, State};
use crate::id::Source;
use crate::retry::retry;
use crate::seizure;
use crate::sys::preserving_errno;

impl<T: Send> Stack<T> {
    #[cold]
    #[inline(never)]
    pub(super) fn push_slowly(&self, item: Item) -> Result<(), Item> {
        let item = announce_push(item);
        if let Some((shard, mut owned)) = self.handle.atomic_block().and_then(own_at_hint) {
            if shard.push(&mut owned, self.full(), item) {
                return Ok(());
            }
        }
        if self.is_full_here() { Err(item) } else { self.find_room(item) }
    }

    #[inline(never)]
    fn find_room(&self, item: Item) -> Result<(), Item> {
        preserving_errno(|| {
            let State::Claimed(block, source) = self.handle.settle(Needs::Fence, self.bytes())
            else {
                return Err(item);
            };
            let pushed = source.and_then(|source| self.push_as(block, source, item));
            pushed.unwrap_or_else(|| match self.chunks.items() >= self.shared_limit {
                true => Err(item),
                false => self.chunks.push(item),
            })
        })
    }

    /// Returns `true` if neither the shard of the thread's ID nor the shared list has room: a push to
    /// a full stack needs no more than a look.
    fn is_full_here(&self) -> bool {
        self.top_here() == Some(self.full()) && self.chunks.items() >= self.shared_limit
    }

    /// Returns `true` if neither has an item. The list's count is raised before items are added, so a
    /// count of 0 means that there are none.
    fn is_empty_here(&self) -> bool {
        matches!(self.top_here(), Some(0 | EMPTY)) && self.chunks.items() == 0
    }

    /// Returns the top of this thread's current shard, as a hint, if the stack has been used and the
    /// thread has an ID.
    fn top_here(&self) -> Option<i64> {
        let State::Claimed(block, Some(source)) = self.handle.state() else { return None };
        let id = source.hint().filter(|&id| id < source.id_count())?;
        Some(block.word_of_id(id).load(Relaxed))
    }

    /// Pushes to this thread's current shard; `None` if it has none.
    fn push_as(&self, block: Block, source: Source, item: Item) -> Option<Result<(), Item>> {
        let make_room = || {
            match self.look(block, source)? {
                0 => self.activate(block, source),
                top if top == self.full() => {
                    if !self.flush(block, source) {
                        return Some(ControlFlow::Break(Err(item)));
                    }
                }
                1.. => {}
                ..0 => return None,
            }
            Some(ControlFlow::Continue(()))
        };
        retry(|| self.try_push(block, source, item).then_some(Ok(())), make_room)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn pop_slowly(&self) -> Option<Item> {
        let atomic = self.handle.atomic_block().and_then(own_at_hint);
        let popped = atomic.and_then(|(shard, mut owned)| shard.pop(&mut owned));
        let item = match popped {
            None if self.is_empty_here() => return None,
            None => self.find_item(),
            popped => popped,
        };
        item.inspect(|&item| announce_popped(item))
    }

    #[inline(never)]
    fn find_item(&self) -> Option<Item> {
        preserving_errno(|| {
            let State::Claimed(block, source) = self.handle.settle(Needs::Fence, self.bytes())
            else {
                return None;
            };
            // While the source is being chosen, all items go to the shared list.
            let Some(source) = source else { return self.chunks.pop() };
            let refill = || match self.look(block, source)? {
                0 | EMPTY => Some(ControlFlow::Break(self.refill(block, source))),
                2.. => Some(ControlFlow::Continue(())),
                ..0 => None,
            };
            let popped = retry(|| self.try_pop(block, source).map(Some), refill);
            popped.unwrap_or_else(|| self.chunks.pop())
        })
    }

    /// Returns the top of this thread's current shard, as a hint; `None` if it has none.
    fn look(&self, block: Block, source: Source) -> Option<i64> {
        let id = source.ensure_id_hint()?;
        Some(block.word_of_id(id).load(Relaxed))
    }

    fn try_push(&self, block: Block, source: Source, item: Item) -> bool {
        if source == Source::Atomic {
            let owned = own_at_hint(block);
            return owned
                .is_some_and(|(shard, mut seized)| shard.push(&mut seized, self.full(), item));
        }
        // SAFETY: the block of this stack, whose source has been prepared.
        unsafe { try_push(handle::marked(block, source), &self.capacity, item) }
    }

    fn try_pop(&self, block: Block, source: Source) -> Option<Item> {
        if source == Source::Atomic {
            let (shard, mut seized) = own_at_hint(block)?;
            return shard.pop(&mut seized);
        }
        // SAFETY: the block of this stack, whose source has been prepared.
        unsafe { try_pop(handle::marked(block, source)) }
    }

    /// Activates this thread's current shard, unless another thread does.
    fn activate(&self, block: Block, source: Source) {
        let shard = if source == Source::Atomic {
            acquire_at_hint(block)
        } else {
            // SAFETY: the first word of this stack's block, whose source has been prepared.
            unsafe { try_activate(handle::marked(block, source)) }
        };
        if shard == 0 {
            return;
        }
        let id = ((shard - block.0) / STRIDE - 1) as u32;
        // SAFETY: the first word of a shard in an open slot, which belongs to this thread until it
        // is returned.
        let top: &AtomicI64 = unsafe { &*word(shard) };
        // The ID becomes a member first: a drain must not miss items that are pushed as soon as the
        // shard is active.
        seizure::owned(top, EMPTY).give_back_after(|| self.members.insert(id));
    }

    /// Moves a batch from this CPU's part to the shared list. Returns `false` if the list has no
    /// room.
    fn flush(&self, block: Block, source: Source) -> bool {
        if self.chunks.items() >= self.shared_limit {
            return false;
        }
        let Some(mut chunk) = self.chunks.fresh() else { return false };
        while chunk.len() < self.batch() {
            match self.try_pop(block, source) {
                Some(item) => chunk.push(item),
                None => break,
            }
        }
        self.chunks.put(chunk);
        true
    }

    /// Takes a batch from the shared list, one item for the caller and the rest for this CPU's
    /// part.
    fn refill(&self, block: Block, source: Source) -> Option<Item> {
        let mut chunk = self.chunks.take()?;
        let item = chunk.pop();
        self.stow(block, source, &mut chunk);
        self.chunks.put(chunk);
        item
    }

    /// Pushes a batch of a chunk's items until there is no room.
    pub(super) fn stow(&self, block: Block, source: Source, chunk: &mut Chunk) {
        if chunk.len() > 0 && self.look(block, source) == Some(0) {
            self.activate(block, source);
        }
        for _ in 1..self.batch() {
            let Some(item) = chunk.pop() else { break };
            if !self.try_push(block, source, item) {
                chunk.push(item);
                break;
            }
        }
    }

    /// Returns the number of items that move at once: half of a part, so that it is neither full
    /// nor empty afterwards.
    fn batch(&self) -> usize {
        (self.capacity.div_ceil(2) as usize).min(ITEMS)
    }
}

/// Runs the section `push`, in one place for all slow paths and all types of items.
///
/// # Safety
///
/// `word` is a stack's block with the mark of a source that has been prepared, and `capacity` is
/// the stack's capacity.
#[inline(never)]
unsafe fn try_push(word: usize, capacity: &u64, item: Item) -> bool {
    // SAFETY: the caller passes a stack's block with the mark of a prepared source, and its
    // capacity.
    unsafe { by_mark!(word, push(capacity, item), else false) }
}

/// Runs the section `pop`, with the obligations of [`try_push`].
#[inline(never)]
unsafe fn try_pop(word: usize) -> Option<Item> {
    // SAFETY: the caller passes a stack's block with the mark of a prepared source.
    unsafe { by_mark!(word, pop(), else None) }
}

/// Runs the section `acquire` on an inactive shard, with the obligations of [`try_push`]. Returns
/// the address of the shard; 0 if it is active already.
///
/// A stack's shard has no word that closes it: its top, which must be zero, is used instead.
#[inline(never)]
unsafe fn try_activate(word: usize) -> usize {
    // SAFETY: the caller passes a stack's block with the mark of a prepared source.
    unsafe { by_mark!(word, acquire::<0>(0, ACTIVATING as usize), else 0) }
}
