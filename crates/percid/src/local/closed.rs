//! Shards that a visitor has closed together.

use std::ptr::NonNull;

use super::lock::Lock;
use super::shard::{Shard, shard_at};
use crate::arena::Block;
use crate::id::set::ids;

/// The location of shards that are visited together.
#[derive(Debug)]
pub(super) enum Batch<T> {
    /// The shards of an ID and of the 63 IDs after it.
    Ids { block: Block, base: u32 },
    /// An extra shard.
    Extra(NonNull<Shard<T>>),
}

impl<T> Batch<T> {
    pub(super) fn shard(&self, bit: u32) -> NonNull<Shard<T>> {
        match *self {
            Batch::Ids { block, base } => shard_at(block.of_id(base + bit)),
            Batch::Extra(shard) => shard,
        }
    }

    pub(super) fn id(&self, bit: u32) -> Option<u32> {
        match self {
            Batch::Ids { base, .. } => Some(base + bit),
            Batch::Extra(_) => None,
        }
    }

    pub(super) fn lock(&self, bit: u32) -> &Lock {
        // SAFETY: shards stay mapped as long as the handle.
        unsafe { &(*self.shard(bit).as_ptr()).lock }
    }
}

/// Closed shards, which are visited from the lowest bit on, and opened when dropped.
#[derive(Debug)]
pub(super) struct Closed<T> {
    pub(super) batch: Batch<T>,
    bits: u64,
}

impl<T> Closed<T> {
    pub(super) fn new(batch: Batch<T>, bits: u64) -> Closed<T> {
        ids(0, bits).for_each(|bit| batch.lock(bit).close());
        Closed { batch, bits }
    }

    pub(super) fn lowest(&self) -> Option<u32> {
        ids(0, self.bits).next()
    }

    pub(super) fn open_lowest(&mut self) {
        if let Some(bit) = self.lowest() {
            self.batch.lock(bit).open();
            self.bits &= self.bits - 1;
        }
    }
}

impl<T> Drop for Closed<T> {
    fn drop(&mut self) {
        ids(0, self.bits).for_each(|bit| self.batch.lock(bit).open());
    }
}
