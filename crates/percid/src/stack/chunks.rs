//! The shared list of a stack: items in chunks, which threads take and put as a whole.
//!
//! A chunk that is not on a list belongs to the thread that took it, so its contents are accessed
//! without synchronisation. Taking a chunk acquires what putting it released. No thread waits. If a
//! thread is interrupted between taking and putting, only the items of its chunk are unavailable
//! during that time.

use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use super::item::Item;
use crate::arena::{Block, BlockList};

/// Number of items in a full chunk.
pub(crate) const ITEMS: usize = 30;

/// The size of a chunk in bytes: the list's word, the number of items, the items.
const BYTES: usize = (2 + ITEMS) * 8;

#[derive(Debug)]
pub(crate) struct Chunks {
    filled: BlockList,
    empty: BlockList,
    /// The approximate number of items in filled chunks: it is not changed together with the lists,
    /// and may be negative temporarily.
    items: AtomicIsize,
}

impl Chunks {
    pub(crate) const fn new() -> Chunks {
        Chunks { filled: BlockList::new(), empty: BlockList::new(), items: AtomicIsize::new(0) }
    }

    /// Returns the approximate number of items.
    pub(crate) fn items(&self) -> usize {
        self.items.load(Relaxed).max(0) as usize
    }

    /// Takes a chunk that has items; `None` if there is none.
    pub(crate) fn take(&self) -> Option<Chunk> {
        let chunk = Chunk(self.filled.pop()?);
        self.items.fetch_sub(chunk.len() as isize, Relaxed);
        Some(chunk)
    }

    /// Returns a chunk without items; `None` if there is no memory.
    pub(crate) fn fresh(&self) -> Option<Chunk> {
        self.empty.pop().or_else(|| Block::claim(BYTES)).map(Chunk)
    }

    /// Puts a chunk back.
    pub(crate) fn put(&self, chunk: Chunk) {
        match chunk.len() {
            0 => self.empty.push(chunk.0),
            items => {
                self.items.fetch_add(items as isize, Relaxed);
                self.filled.push(chunk.0);
            }
        }
    }

    /// Adds one item; returns it if there is no memory.
    pub(crate) fn push(&self, item: Item) -> Result<(), Item> {
        let filled = self.take();
        let (full, room) = match filled {
            Some(chunk) if chunk.len() < ITEMS => (None, Some(chunk)),
            other => (other, self.fresh()),
        };
        if let Some(full) = full {
            self.put(full);
        }
        let Some(mut chunk) = room else { return Err(item) };
        chunk.push(item);
        self.put(chunk);
        Ok(())
    }

    /// Takes one item.
    pub(crate) fn pop(&self) -> Option<Item> {
        let mut chunk = self.take()?;
        let item = chunk.pop();
        self.put(chunk);
        item
    }

    /// Frees the memory. The chunks must have no items.
    pub(crate) fn clear(&mut self) {
        while let Some(block) = self.empty.pop() {
            // SAFETY: the block came from `fresh` and belongs to the thread that took it from the
            // list.
            unsafe { block.release(BYTES) };
        }
    }
}

/// A chunk that is on no list.
#[derive(Debug)]
pub(crate) struct Chunk(Block);

impl Chunk {
    pub(crate) fn len(&self) -> usize {
        // SAFETY: the chunk and all its words belong to the caller alone.
        unsafe { self.word(1).cast::<usize>().read() }
    }

    /// Adds an item. There must be room.
    pub(crate) fn push(&mut self, item: Item) {
        let len = self.len();
        assert!(len < ITEMS);
        // SAFETY: the chunk and all its words belong to the caller alone, and there is room.
        unsafe {
            self.word(2 + len).write(item);
            self.word(1).cast::<usize>().write(len + 1);
        }
    }

    /// Removes the item that was added last.
    pub(crate) fn pop(&mut self) -> Option<Item> {
        let len = self.len().checked_sub(1)?;
        // SAFETY: the chunk and all its words belong to the caller alone.
        unsafe {
            self.word(1).cast::<usize>().write(len);
            Some(self.word(2 + len).read())
        }
    }

    fn word(&self, index: usize) -> *mut Item {
        std::ptr::with_exposed_provenance_mut(self.0.0 + index * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_and_go_one_by_one() {
        let mut chunks = Chunks::new();
        for item in 0..100 {
            chunks.push(Item::new(item)).expect("memory");
        }
        assert_eq!(chunks.items(), 100);
        // SAFETY: whole words were pushed.
        let pop = || chunks.pop().map(|item| unsafe { item.assume_init() });
        let mut all: Vec<u64> = std::iter::from_fn(pop).collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        assert_eq!(chunks.items(), 0);
        chunks.clear();
    }
}
