//! The cached blocks of one size class.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use percid::id::SourceError;
use percid::{Counter, Source, Stack};

use crate::block::Block;
use crate::mark::{set_mark, take_mark};
use crate::size_class::SizeClass;

/// The largest number of blocks that one call obtains or gives back.
const MAX_BATCH: u32 = 32;

/// The free blocks of a class. Their addresses lie outside the blocks, so a program that writes
/// beyond an object, or after it was freed, does not change them.
pub(crate) struct Cache {
    blocks: Stack<Block>,
    layout: Layout,
    /// Number of blocks that the next miss obtains. It grows with every miss, and shrinks when
    /// blocks are given back.
    batch: AtomicU32,
    pub(crate) obtained: Counter,
    pub(crate) returned: Counter,
}

impl Cache {
    pub(crate) const fn new(class: SizeClass) -> Cache {
        // All CPUs share as much as two of them keep.
        let (capacity, shared) = (class.capacity(), 2 * class.capacity() as usize);
        Cache::with(class, Stack::bounded(capacity, shared), Counter::new(), Counter::new())
    }

    pub(crate) fn with_source(class: SizeClass, source: Source) -> Result<Cache, SourceError> {
        let capacity = class.capacity();
        let blocks = Stack::bounded_with_source(source, capacity, 2 * capacity as usize)?;
        let counter = || Counter::with_source(source);
        Ok(Cache::with(class, blocks, counter()?, counter()?))
    }

    const fn with(
        class: SizeClass,
        blocks: Stack<Block>,
        obtained: Counter,
        returned: Counter,
    ) -> Cache {
        Cache { blocks, layout: class.layout(), batch: AtomicU32::new(1), obtained, returned }
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Block> {
        let block = self.blocks.pop()?;
        take_mark(&block);
        Some(block)
    }

    #[inline(always)]
    pub(crate) fn push(&self, block: Block) -> Result<(), Block> {
        set_mark(&block);
        self.blocks.push(block)
    }

    /// Returns about how many blocks it has.
    pub(crate) fn count(&self) -> usize {
        self.blocks.item_count()
    }

    /// Obtains blocks that the next requests will need, after one that the cache did not have.
    pub(crate) fn refill(&self, behind: &impl GlobalAlloc) {
        let batch = self.batch.load(Relaxed);
        self.batch.store((2 * batch).min(self.max_batch()), Relaxed);
        let mut obtained = 1;
        for _ in 1..batch {
            // SAFETY: the layout of a class is at least 16 bytes.
            let Some(block) = Block::new(unsafe { behind.alloc(self.layout) }) else { break };
            if let Err(block) = self.push(block) {
                self.return_to(behind, block);
                break;
            }
            obtained += 1;
        }
        self.obtained.add(obtained);
    }

    /// Gives back a block for which there was no room, and others of this CPU, so that there is room
    /// for the next ones.
    pub(crate) fn give_back(&self, block: Block, behind: &impl GlobalAlloc) {
        self.batch.store((self.batch.load(Relaxed) / 2).max(1), Relaxed);
        let mut next = Some(block);
        let mut returned = 0;
        while let Some(block) = next {
            self.return_to(behind, block);
            returned += 1;
            next = if returned < i64::from(self.max_batch()) { self.pop() } else { None };
        }
        self.returned.add(returned);
    }

    /// Gives back all blocks, and returns their number of bytes.
    pub(crate) fn drain(&self, behind: &impl GlobalAlloc) -> usize {
        let returned = self.blocks.drain(|block| self.return_to(behind, block));
        self.returned.add(returned as i64);
        returned * self.layout.size()
    }

    fn return_to(&self, behind: &impl GlobalAlloc, block: Block) {
        take_mark(&block);
        // SAFETY: blocks of this cache were obtained with its layout, and nobody else has this one.
        unsafe { behind.dealloc(block.address(), self.layout) };
    }

    /// Returns half of what an ID keeps: afterwards the part is neither full nor empty.
    fn max_batch(&self) -> u32 {
        self.blocks.capacity().div_ceil(2).min(MAX_BATCH)
    }
}
