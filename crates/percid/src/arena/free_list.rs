//! A lock-free list of free cells, linked through a word of the cells themselves.
//!
//! # Proof
//!
//! A free cell's word holds the offset of the next free cell (0 ends the list); the head holds an
//! offset and a tag that changes with every pop. A pop reads the head, reads the link of that cell,
//! and exchanges the head. If another thread took the cell in between, its word is no longer a
//! link. But then the tag has changed as well, and the exchange fails. The tag has 32 bits, so it
//! repeats only if a thread sleeps through exactly 2^32 pops between its two accesses. Reading the
//! word of a cell that is in use again is harmless: it is an atomic load of memory that is never
//! unmapped.

use crate::sys::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The list. An all-zero head is the empty list.
#[derive(Debug)]
pub(crate) struct FreeList {
    /// The first free cell's offset in the lower half, the tag in the upper.
    pub(crate) head: AtomicU64,
}

impl FreeList {
    /// Removes a cell from the list and zeroes its word. `word` returns the word of an offset that
    /// was pushed.
    pub(crate) fn pop<'w>(&self, word: impl Fn(u32) -> &'w AtomicI64) -> Option<u32> {
        // Acquire: for the link.
        let mut head = self.head.load(Acquire);
        loop {
            let offset = head as u32;
            if offset == 0 {
                return None;
            }
            let link = word(offset).load(Relaxed) as u32;
            let tag = (head >> 32).wrapping_add(1);
            let next = tag << 32 | u64::from(link);
            // Relaxed, if it succeeds: since the tag changes, this is the head that was acquired.
            match self.head.compare_exchange_weak(head, next, Relaxed, Acquire) {
                Ok(_) => {
                    word(offset).store(0, Relaxed);
                    return Some(offset);
                }
                Err(now) => head = now,
            }
        }
    }

    /// Adds a cell that no thread uses to the list. `word` is its word.
    pub(crate) fn push(&self, offset: u32, word: &AtomicI64) {
        let mut head = self.head.load(Relaxed);
        loop {
            word.store(i64::from(head as u32), Relaxed);
            let next = head >> 32 << 32 | u64::from(offset);
            // Release: a thread that pops the cell sees its words zeroed and its link written.
            match self.head.compare_exchange_weak(head, next, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}
