//! Thread-local storage where percid has no critical sections: no rseq area is ever looked for, and
//! the block is an ordinary thread-local value, reached as an offset from address zero.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

use super::block::Block;

thread_local! {
    // All zero is a valid block whose area is never registered.
    static BLOCK: UnsafeCell<MaybeUninit<Block>> = const { UnsafeCell::new(MaybeUninit::zeroed()) };
}

/// Address zero: see [`own_offset`].
#[inline(always)]
pub(crate) fn pointer() -> usize {
    0
}

/// A number that no other living thread has; not 0 and even.
pub(crate) fn token() -> usize {
    BLOCK.with(|block| block.get().addr())
}

/// The address of the calling thread's block.
#[inline(always)]
pub(crate) fn own_offset() -> isize {
    BLOCK.with(|block| block.get().expose_provenance()) as isize
}

/// Never asked for: without critical sections there is no use for it.
pub(super) fn libc_rseq_symbols() -> (*const isize, *const u32) {
    (ptr::null(), ptr::null())
}

/// As [`libc_rseq_symbols`].
pub(super) fn shared_references() -> Option<(isize, isize)> {
    None
}
