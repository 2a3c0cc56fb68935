//! The critical sections for 64-bit Arm.
//!
//! As `x86_64.rs`, with three differences: the commit is a store, so the sum is computed in a second
//! scratch register; addresses that lie far away are built from page and offset; and the linker may
//! insert a veneer between the section and its pad, which destroys x16 and x17.

use std::arch::asm;

use super::{FAST_PATH, FastPath};
use crate::arena::SHIFT;
use crate::sys::thread;

macro_rules! section {
    (
        index { $($index:literal),* }
        commit { $($commit:literal),* }
        restart $restart:block
        $($operands:tt)*
    ) => {
        asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "9:",
            ".word 0, 0",             // version, flags
            ".xword 2f, 3f - 2f, 4f", // start, length, abort
            ".popsection",
            "adrp {scratch}, 9b",
            "add {scratch}, {scratch}, :lo12:9b",
            "str {scratch}, [{area}, #8]",
            "2:",
            $($index,)*
            "add {scratch}, {cell}, {scratch}, lsl #{shift}",
            "ldr {sum}, [{scratch}]",
            "add {sum}, {sum}, {n}",
            $($commit,)*
            "3:",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".inst 0xd428bc00", // the signature: brk #0x45e0
            "4:",
            "b {restart}",
            ".popsection",
            scratch = out(reg) _,
            sum = out(reg) _,
            area = in(reg) thread::at(FAST_PATH.area()),
            shift = const SHIFT,
            restart = label $restart,
            out("x16") _,
            out("x17") _,
            $($operands)*
            options(nostack)
        )
    };
}

/// Adds `n` to this CPU's copy of the word at `cell`, indexed by the kernel's concurrency ID.
/// Answers whether it did.
///
/// # Safety
///
/// As the function of this name in `x86_64.rs`.
#[inline(always)]
pub(crate) unsafe fn add_kernel<const DISPLACEMENT: isize>(cell: usize, n: i64) -> bool {
    // SAFETY: as in x86_64.rs; the commit is the one store at the end. The entry is ID + 1 because of
    // the addition, so both sources share the rest of the section.
    unsafe {
        section!(
            index {
                "ldr {scratch:w}, [{area}, #24]",
                "ldr {limit:w}, [{fast_path}, #{limit_offset}]",
                "cmp {scratch:w}, {limit:w}",
                "b.hs {restart}",
                "add {scratch:w}, {scratch:w}, #1"
            }
            commit { "str {sum}, [{scratch}]" }
            restart { return false }
            limit = out(reg) _,
            fast_path = in(reg) &raw const FAST_PATH,
            limit_offset = const std::mem::offset_of!(FastPath, kernel_limit),
            cell = in(reg) cell.wrapping_add_signed(DISPLACEMENT),
            n = in(reg) n,
        );
    }
    true
}

/// Adds `n` to this CPU's copy of the word at `cell`, indexed through percid's table. Answers whether
/// it did.
///
/// # Safety
///
/// As the function of this name in `x86_64.rs`.
#[inline(always)]
pub(crate) unsafe fn add_table<const DISPLACEMENT: isize>(cell: usize, n: i64) -> bool {
    // SAFETY: as in x86_64.rs; the commit is the one store at the end.
    unsafe {
        section!(
            index {
                "ldrsw {scratch}, [{area}, #4]",
                "ldr {scratch:w}, [{table}, {scratch}, lsl #2]",
                "cbz {scratch:w}, {restart}"
            }
            commit { "str {sum}, [{scratch}]" }
            restart { return false }
            table = in(reg) FAST_PATH.table.load(std::sync::atomic::Ordering::Relaxed),
            cell = in(reg) cell.wrapping_add_signed(DISPLACEMENT),
            n = in(reg) n,
        );
    }
    true
}
