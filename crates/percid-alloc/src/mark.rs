//! A mark in free blocks, so that one that is freed again is noticed: a word that depends on the address.
//!
//! A block is marked exactly while it is in a cache: it is marked before it is pushed, and the mark is
//! taken away when it is popped, before an object or the allocator behind has it. So an object whose
//! first word is the mark is a free block, or its program has written this very number there.

use std::arch::asm;

use crate::block::Block;

/// 2^64 divided by the golden ratio: neighbouring addresses have marks that differ in most bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

fn mark_of(block: &Block) -> u64 {
    (block.address() as u64 ^ SPREAD).wrapping_mul(SPREAD)
}

/// Returns `true` if a block that is being freed has the mark of a free one.
#[inline(always)]
pub(crate) fn has_mark(block: &Block) -> bool {
    first_word(block) == mark_of(block)
}

#[inline(always)]
pub(crate) fn set_mark(block: &Block) {
    // SAFETY: a block has at least 16 bytes, aligned to 16, that belong to whoever has the block.
    unsafe { block.address().cast::<u64>().write(mark_of(block)) };
}

#[inline(always)]
pub(crate) fn take_mark(block: &Block) {
    // SAFETY: as in `set_mark`.
    unsafe { block.address().cast::<u64>().write(0) };
}

/// Reads what the program may never have written, which Rust's own loads must not do.
#[inline(always)]
fn first_word(block: &Block) -> u64 {
    let word: u64;
    let address = block.address();
    // SAFETY: a block has at least 16 bytes, aligned to 16, which can be read.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, [{}]", out(reg) word, in(reg) address, options(nostack, readonly, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("ldr {}, [{}]", out(reg) word, in(reg) address, options(nostack, readonly, preserves_flags));
        #[cfg(target_arch = "riscv64")]
        asm!("ld {}, 0({})", out(reg) word, in(reg) address, options(nostack, readonly, preserves_flags));
    }
    word
}
