//! The shard of an ID: its top, its slots, and the thread that owns it without a section.

use std::sync::atomic::Ordering::Relaxed;

use super::item::Item;
use crate::arena::Block;
use crate::id::Source;
use crate::seizure::{self, SEIZED, Seized};

/// The top of a shard that is being activated.
pub(super) const ACTIVATING: i64 = SEIZED;

/// The top of a shard that is active and has no items.
pub(super) const EMPTY: i64 = 1;

/// The slots of a shard that the calling thread owns.
pub(super) struct Shard {
    pub(super) address: usize,
}

impl Shard {
    pub(super) fn push(&self, seized: &mut Seized<'_>, full: i64, item: Item) -> bool {
        let has_room = seized.value < full;
        if has_room {
            // SAFETY: a slot of a shard that this thread owns.
            unsafe { self.slot(seized.value).write(item) };
            seized.value += 1;
        }
        has_room
    }

    pub(super) fn pop(&self, seized: &mut Seized<'_>) -> Option<Item> {
        if seized.value <= EMPTY {
            return None;
        }
        seized.value -= 1;
        // SAFETY: a slot below the top of a shard that this thread owns.
        Some(unsafe { self.slot(seized.value).read() })
    }

    pub(super) fn slot(&self, index: i64) -> *mut Item {
        std::ptr::with_exposed_provenance_mut(self.address + index as usize * 8)
    }
}

/// Seizes the shard of the thread's hint for the atomic source, in which only the owner accesses a
/// shard.
pub(super) fn own_at_hint(block: Block) -> Option<(Shard, Seized<'static>)> {
    let id = Source::Atomic.ensure_id_hint()?;
    let word = block.word_of_id(id);
    let top = word.load(Relaxed);
    let seized = if top > 0 { seizure::exchange(word, top)? } else { return None };
    Some((Shard { address: block.of_id(id) }, seized))
}

pub(super) fn acquire_at_hint(block: Block) -> usize {
    let Some(id) = Source::Atomic.ensure_id_hint() else { return 0 };
    let word = block.word_of_id(id);
    if seizure::claim(word, 0, ACTIVATING) { block.of_id(id) } else { 0 }
}
