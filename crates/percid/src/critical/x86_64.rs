//! The critical sections for x86-64.
//!
//! Operands: `index` and `work` are `out`, never `lateout`, so that they cannot share a register with an
//! input: after an abort the slow path still needs the inputs. `rseq_cs` is never cleared: the kernel
//! ignores it as soon as the thread is found outside the section.
//!
//! The descriptor goes to the section `__rseq_cs`, where checkers find all of them; it is writable,
//! since position-independent code needs its addresses relocated. The abort pad has a section of its
//! own, so that it stays out of the way of the instruction cache.

use std::arch::asm;
use std::mem::offset_of;

use super::{FAST_PATH, FastPath};
use crate::arena::SHIFT;

/// One critical section: descriptor, declaration, the index, the operation, the abort pad.
///
/// `work` holds the address of the rseq area (relative to the thread pointer) when the index is read, and
/// is free afterwards. Leaves through the block `restart` if it was aborted or found no index.
macro_rules! section {
    (
        index { $($index:literal),* }
        commit { $commit:expr }
        restart $restart:block
        $($operands:tt)*
    ) => {
        asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "9:",
            ".long 0, 0",             // version, flags
            ".quad 2f, 3f - 2f, 4f",  // start, length, abort
            ".popsection",
            "mov {work}, qword ptr [{fast_path} + {area}]",
            "lea {index}, [rip + 9b]",
            "mov qword ptr fs:[{work} + 8], {index}",
            "2:",
            $($index,)*
            "shl {index}, {shift}",
            "add {index}, {cell}",
            $commit,
            "3:",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".byte 0x0f, 0xb9, 0x3d", // with the signature: ud1 edi, [rip + signature]
            ".long 0x53053053",
            "4:",
            "jmp {restart}",
            ".popsection",
            index = out(reg) _,
            work = out(reg) _,
            fast_path = in(reg) &raw const FAST_PATH,
            area = const offset_of!(FastPath, area),
            shift = const SHIFT,
            restart = label $restart,
            $($operands)*
            options(nostack)
        )
    };
}

/// The operation `add`: see the module above for its shape.
macro_rules! add {
    () => {
        concat!(
            "mov {work}, {n}\n",
            "add {work}, qword ptr [{index} + {displacement}]\n",
            "mov qword ptr [{index} + {displacement}], {work}",
        )
    };
}

/// Adds `n` to this CPU's copy of the word at `cell`, indexed by the kernel's concurrency ID.
/// Answers whether it did.
///
/// # Safety
///
/// `cell + DISPLACEMENT` is the address of a word in the arena's shared slot, and the kernel source has
/// been prepared (so `FAST_PATH.area` leads to an rseq area in every thread).
#[inline(always)]
pub(crate) unsafe fn add_kernel<const DISPLACEMENT: isize>(cell: usize, n: i64) -> bool {
    // SAFETY: obligations 1 to 4 of the module `critical`: one store is the commit and the last
    // instruction; only `index` and `work` are written before; `mm_cid` is read inside. The address is
    // `shared slot + (1 + ID) * stride`, open because ID < kernel_limit. No other thread commits to it:
    // this ID belongs to the thread that runs here until it is preempted, which aborts us.
    unsafe {
        section!(
            index {
                "mov {index:e}, dword ptr fs:[{work} + 24]",
                "cmp {index:e}, dword ptr [{fast_path} + {limit}]",
                "jae {restart}",
                "inc {index:e}"
            }
            commit { add!() }
            restart { return false }
            limit = const offset_of!(FastPath, kernel_limit),
            displacement = const DISPLACEMENT,
            cell = in(reg) cell,
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
/// As [`add_kernel`], with the table source prepared (so `FAST_PATH.table` is set too).
#[inline(always)]
pub(crate) unsafe fn add_table<const DISPLACEMENT: isize>(cell: usize, n: i64) -> bool {
    // SAFETY: as in `add_kernel`. The entry is ID + 1, so the address is `shared slot + entry *
    // stride`; the ID's memory was opened before the entry was stored. The zero entries in front of
    // the table make -1 and -2 valid indices. Nobody else commits to this ID's memory: entries are
    // distinct, and whoever takes one away fences this CPU before using it.
    unsafe {
        section!(
            index {
                "movsxd {index}, dword ptr fs:[{work} + 4]",
                "mov {work}, qword ptr [{fast_path} + {table}]",
                "mov {index:e}, dword ptr [{work} + {index} * 4]",
                "test {index:e}, {index:e}",
                "jz {restart}"
            }
            commit { add!() }
            restart { return false }
            table = const offset_of!(FastPath, table),
            displacement = const DISPLACEMENT,
            cell = in(reg) cell,
            n = in(reg) n,
        );
    }
    true
}
