//! Thread-local storage for builds without critical sections: no rseq area is ever used. The block
//! is an ordinary thread-local value, accessed as an offset from address zero.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

use super::block::Block;

thread_local! {
    // All zero is a valid block whose area is never registered.
    static BLOCK: UnsafeCell<MaybeUninit<Block>> = const { UnsafeCell::new(MaybeUninit::zeroed()) };
}

/// Returns address zero: see [`own_offset`].
#[inline(always)]
pub(crate) fn pointer() -> usize {
    0
}

/// Returns a number that no other living thread has; not 0 and even.
pub(crate) fn token() -> usize {
    BLOCK.with(|block| block.get().addr())
}

/// Returns the address of the calling thread's block.
#[inline(always)]
pub(crate) fn own_offset() -> isize {
    BLOCK.with(|block| block.get().expose_provenance()) as isize
}

/// Returns null pointers; never called, because there are no critical sections.
pub(super) fn libc_rseq_symbols() -> (*const isize, *const u32) {
    (ptr::null(), ptr::null())
}

/// Returns `None`; never called, because there are no critical sections.
pub(super) fn shared_references() -> Option<(isize, isize)> {
    None
}
