//! The shard of one ID, for percid's own proofs.

use std::ptr::NonNull;

use super::Local;
use super::shard::{Shard, shard_at};
use crate::handle::State;

impl<T, F> Local<T, F> {
    /// Returns the lock and the value of an ID.
    pub(crate) fn shard_of_id(&self, id: u32) -> Option<(&std::sync::atomic::AtomicI64, *mut T)> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                let shard: NonNull<Shard<T>> = shard_at(block.of_id(id));
                // SAFETY: the shard lies in an open slot, which stays mapped.
                Some(unsafe { (&(*shard.as_ptr()).lock.state, &raw mut (*shard.as_ptr()).value) })
            }
            _ => None,
        }
    }
}
