//! The shard of one ID and the shared list, for percid's own proofs.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::Stack;
use super::item::{from_word, into_word};
use super::shard::Shard;
use crate::arena::word;
use crate::handle::State;
use crate::seizure;

impl<T: Send> Stack<T> {
    /// Returns the items of an ID, the top first; `None` if its shard is inactive.
    pub(crate) fn items_of_id(&self, id: u32) -> Option<Vec<T>>
    where
        T: Copy,
    {
        let (shard, top) = self.shard_of_id(id)?;
        // SAFETY: the slots below the top hold words that were made of items, which may be copied.
        let item = |slot| unsafe { from_word(shard.slot(slot).read()) };
        Some((1..top).rev().map(item).collect())
    }

    /// Pushes to the shard of an ID, which belongs to the caller alone.
    pub(crate) fn push_to_id(&self, id: u32, item: T) -> Result<(), T> {
        let item = into_word(item);
        let pushed = self.shard_of_id(id).is_some_and(|(shard, top)| {
            let seized = seizure::exchange(shard.word(), top);
            seized.is_some_and(|mut seized| shard.push(&mut seized, self.full(), item))
        });
        // SAFETY: the word was made of an item and no thread has taken it.
        if pushed { Ok(()) } else { Err(unsafe { from_word(item) }) }
    }

    /// Pops from the shard of an ID, which belongs to the caller alone.
    pub(crate) fn pop_from_id(&self, id: u32) -> Option<T> {
        let (shard, top) = self.shard_of_id(id)?;
        let item = shard.pop(&mut seizure::exchange(shard.word(), top)?)?;
        // SAFETY: the word was made of an item and is converted back once.
        Some(unsafe { from_word(item) })
    }

    /// Pushes to the shared list.
    pub(crate) fn push_shared(&self, item: T) -> Result<(), T> {
        // SAFETY: the word was made of an item and no thread has taken it.
        self.chunks.push(into_word(item)).map_err(|item| unsafe { from_word(item) })
    }

    fn shard_of_id(&self, id: u32) -> Option<(Shard, i64)> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                let shard = Shard { address: block.of_id(id) };
                let top = shard.word().load(Relaxed);
                (top > 0).then_some((shard, top))
            }
            _ => None,
        }
    }
}

impl Shard {
    fn word(&self) -> &'static AtomicI64 {
        // SAFETY: the first word of a shard in an open slot, which stays mapped.
        unsafe { &*word(self.address) }
    }
}
