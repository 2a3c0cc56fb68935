//! Which blocks were given back and not claimed since: one bit for each place of a slot.
//!
//! A block that is given back twice would be in its list twice, and then be two objects'. Rust's
//! ownership keeps that out; C programs can copy a counter and destroy both.
//!
//! # Proof
//!
//! Of several threads that give the same block back one finds the bit clear, since it is set by one
//! atomic operation, and only that one clears the block's words and puts it on its list. A block
//! that is popped from the list has its bit cleared before it is handed out, so its new owner can
//! give it back. The orders are relaxed: setting the bit happens before the block is pushed, whose
//! release the pop acquires; clearing it happens before the owner has the block, and whoever gives
//! the block back has it from the owner. So the accesses of one life of a block are ordered by what
//! hands the block on, and within one word each sees the one before it.
//!
//! What no bit tells: that a block was given back and is another owner's by now.

use crate::sys::atomic::{AtomicU64, Ordering::Relaxed};

/// The bytes of the smallest block: what a bit stands for.
pub(super) const SMALLEST: usize = 8;

/// How many bytes of a slot a byte of bits stands for.
pub(super) const BYTES_PER_BYTE: usize = 8 * SMALLEST;

/// Where the word of bits for an offset in a slot is, in bytes from the first of them.
pub(super) fn word_at(offset: usize) -> usize {
    offset / BYTES_PER_BYTE / size_of::<u64>() * size_of::<u64>()
}

/// The bit of a place in its word.
fn bit(place: u32) -> u64 {
    1 << (place / SMALLEST as u32 % u64::BITS)
}

/// Notes that the block at a place is given back. `bits` is the word of bits for its offset.
/// Returns whether it was in use until now.
pub(super) fn note(bits: &AtomicU64, place: u32) -> bool {
    bits.fetch_or(bit(place), Relaxed) & bit(place) == 0
}

/// Forgets that, as the block is about to be handed out.
pub(super) fn forget(bits: &AtomicU64, place: u32) {
    // Most blocks in lists were given back; but the rest of what was never handed out was not, and
    // writing would touch its page.
    if bits.load(Relaxed) & bit(place) != 0 {
        bits.fetch_and(!bit(place), Relaxed);
    }
}
