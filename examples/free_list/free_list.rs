//! A free list of blocks: a structure of the program's own, on per-ID data.

use std::ptr::{self, NonNull};

use percid::per_id::{Field, NoMemory, Pointer, Word};
use percid::{PerId, field};

/// A block of memory; the link is used while it is in the list.
#[derive(Default)]
pub(crate) struct Block {
    next: Pointer<Block>,
    pub(crate) bytes: Vec<u8>,
}

/// The part of an ID.
struct Part {
    first: Pointer<Block>,
    taken: Word,
}

const FIRST: Field<Part, Pointer<Block>> = field!(Part, first);
const NEXT: Field<Block, Pointer<Block>> = field!(Block, next);

/// Blocks that were given back, for the CPU that gave them back.
pub(crate) struct FreeList {
    parts: PerId<Part>,
}

impl FreeList {
    pub(crate) const fn new() -> FreeList {
        FreeList { parts: PerId::new(|| Part { first: Pointer::null(), taken: Word::new(0) }) }
    }

    /// Takes a block of this CPU's part, or makes one.
    pub(crate) fn take(&self) -> Box<Block> {
        let _ = self.parts.add(field!(Part, taken), 1);
        // SAFETY: all blocks were pushed by `give_back`, with this field.
        match unsafe { self.parts.pop(FIRST, NEXT) } {
            // SAFETY: it was a box, and it is in no list any more.
            Ok(Some(block)) => unsafe { Box::from_raw(block.as_ptr()) },
            Ok(None) | Err(NoMemory) => Box::default(),
        }
    }

    /// Gives a block back to this CPU's part.
    pub(crate) fn give_back(&self, block: Box<Block>) {
        let block = NonNull::from(Box::leak(block));
        // SAFETY: the block is valid and in no list, and stays where it is until it was popped.
        if let Err(NoMemory) = unsafe { self.parts.push(FIRST, block, NEXT) } {
            // SAFETY: it was not pushed.
            drop(unsafe { Box::from_raw(block.as_ptr()) });
        }
    }

    /// Frees the blocks of all parts. Returns their number.
    pub(crate) fn drain(&self) -> usize {
        self.parts.visit().map(|part| free(&part.first)).sum()
    }

    /// Returns the number of blocks that were ever taken.
    pub(crate) fn taken(&self) -> i64 {
        self.parts.iter().map(|(_, part)| part.taken.load()).sum()
    }
}

impl Drop for FreeList {
    fn drop(&mut self) {
        self.drain();
    }
}

/// Frees the blocks of a list that no other thread uses.
fn free(first: &Pointer<Block>) -> usize {
    let (mut next, mut freed) = (first.load(), 0);
    first.store(ptr::null_mut());
    while let Some(block) = NonNull::new(next) {
        // SAFETY: each block was a box, and the list that it was in is the caller's.
        next = unsafe { Box::from_raw(block.as_ptr()) }.next.load();
        freed += 1;
    }
    freed
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
