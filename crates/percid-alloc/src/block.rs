//! Blocks that no object uses.

use std::ptr::NonNull;

/// A free block, which belongs to whoever has it.
pub(crate) struct Block(NonNull<u8>);

// SAFETY: a free block is memory that nothing refers to.
unsafe impl Send for Block {}

impl Block {
    pub(crate) fn new(address: *mut u8) -> Option<Block> {
        NonNull::new(address).map(Block)
    }

    #[inline(always)]
    pub(crate) fn address(&self) -> *mut u8 {
        self.0.as_ptr()
    }
}
