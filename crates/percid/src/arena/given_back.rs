//! The blocks that were freed and not claimed since: one bit per place of a slot.
//!
//! A block that is freed twice would be in its list twice, and then belong to two objects. Rust's
//! ownership prevents that; C programs can copy a counter and destroy both.
//!
//! # Proof
//!
//! If several threads free the same block, exactly one finds the bit clear, since it is set by one
//! atomic operation. Only that thread clears the block's words and puts it on its list. A block
//! that is popped from the list has its bit cleared before it is allocated, so its new owner can
//! free it. The orders are relaxed. Setting the bit happens before the block is pushed, whose
//! release the pop acquires. Clearing it happens before the owner has the block, and every thread
//! that frees the block has it from the owner. So the accesses during one life of a block are
//! ordered by the synchronisation that passes the block on, and within one word each sees the one
//! before it.
//!
//! No bit can show that a block was freed and belongs to another owner by now.

use crate::sys::atomic::{AtomicU64, Ordering::Relaxed};

/// The bytes of the smallest block, one per bit.
pub(super) const SMALLEST: usize = 8;

/// Number of bytes of a slot per byte of bits.
pub(super) const BYTES_PER_BYTE: usize = 8 * SMALLEST;

/// Returns the offset of the word of bits for an offset in a slot, in bytes from the first word.
pub(super) fn word_at(offset: usize) -> usize {
    offset / BYTES_PER_BYTE / size_of::<u64>() * size_of::<u64>()
}

/// Returns the bit of a place in its word.
fn bit(place: u32) -> u64 {
    1 << (place / SMALLEST as u32 % u64::BITS)
}

/// Records that the block at a place is freed. `bits` is the word of bits for its offset. Returns
/// `true` if the block was in use until now.
pub(super) fn note(bits: &AtomicU64, place: u32) -> bool {
    bits.fetch_or(bit(place), Relaxed) & bit(place) == 0
}

/// Clears the record, as the block is about to be allocated.
pub(super) fn forget(bits: &AtomicU64, place: u32) {
    // Most blocks in lists were freed; but the remainder of memory that was never allocated was
    // not, and writing would touch its page.
    if bits.load(Relaxed) & bit(place) != 0 {
        bits.fetch_and(!bit(place), Relaxed);
    }
}
