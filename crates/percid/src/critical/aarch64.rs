//! The critical sections for 64-bit Arm.
//!
//! As `x86_64.rs`, with these differences: operations take a second scratch register, since only loads and
//! stores reach memory; addresses that lie far away are built from page and offset; conditional branches
//! do not reach into another section, so the exit with a result lies behind the function's own code; the
//! linker may insert a veneer between the section and its pad, which destroys x16 and x17; and where a
//! thread on another CPU looks without a fence, loads acquire and the commit releases.

use std::arch::asm;
use std::mem::{MaybeUninit, offset_of};

use super::{Append, FAST_PATH, FastPath, ring};
use crate::arena::SHIFT;
use crate::sys::thread;

macro_rules! index {
    (kernel, $exit:literal) => {
        concat!(
            "ldr {index:w}, [{area}, #24]\n",
            "ldr {work:w}, [{fast_path}, #{field}]\n",
            "cmp {index:w}, {work:w}\n",
            "b.hs ",
            $exit,
            "\n",
            "add {index:w}, {index:w}, #1",
        )
    };
    (table, $exit:literal) => {
        concat!(
            "ldrsw {index}, [{area}, #4]\n",
            "ldr {work}, [{fast_path}, #{field}]\n",
            "ldr {index:w}, [{work}, {index}, lsl #2]\n",
            "cbz {index:w}, ",
            $exit,
        )
    };
}

macro_rules! field {
    (kernel) => {
        offset_of!(FastPath, kernel_limit)
    };
    (table) => {
        offset_of!(FastPath, table)
    };
}

macro_rules! section {
    ($source:ident, $operation:ident, restart $restart:block, $($operands:tt)*) => {
        section!(
            @ $source, "{restart}", $operation, "b {restart}", "",
            restart = label $restart, $($operands)*
        )
    };
    ($source:ident, $operation:ident, zero $zero:literal, $($operands:tt)*) => {
        section!(
            @ $source, "6f", $operation, "b 6f",
            concat!("5:\n", ".subsection 1\n", "6:\n", "mov ", $zero, ", #0\n", "b 5b\n", ".previous"),
            $($operands)*
        )
    };
    (@ $source:ident, $exit:literal, $operation:ident, $pad:literal, $behind:expr, $($operands:tt)*) => {
        asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "9:",
            ".word 0, 0",             // version, flags
            ".xword 2f, 3f - 2f, 4f", // start, length, abort
            ".popsection",
            "adrp {index}, 9b",
            "add {index}, {index}, :lo12:9b",
            "str {index}, [{area}, #8]",
            "2:",
            index!($source, $exit),
            "add {index}, {object}, {index}, lsl #{shift}",
            $operation!($exit),
            "3:",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".inst 0xd428bc00", // the signature: brk #0x45e0
            "4:",
            $pad,
            ".popsection",
            $behind,
            area = in(reg) thread::at(FAST_PATH.area()),
            fast_path = in(reg) &raw const FAST_PATH,
            field = const field!($source),
            shift = const SHIFT,
            out("x16") _,
            out("x17") _,
            $($operands)*
            options(nostack)
        )
    };
}

macro_rules! add {
    ($exit:literal) => {
        concat!("ldr {work}, [{index}]\n", "add {work}, {work}, {n}\n", "str {work}, [{index}]",)
    };
}

macro_rules! acquire {
    ($exit:literal) => {
        concat!(
            "add {work}, {index}, #{closed}\n",
            "ldar {work}, [{work}]\n",
            "cbnz {work}, ",
            $exit,
            "\n",
            "ldar {work}, [{index}]\n",
            "cmp {work}, {expected}\n",
            "b.ne ",
            $exit,
            "\n",
            "str {token}, [{index}]",
        )
    };
}

macro_rules! push {
    ($exit:literal) => {
        concat!(
            "ldr {work}, [{index}]\n",
            "sub {items}, {work}, #1\n",
            "cmp {items}, {capacity}\n",
            "b.hs ",
            $exit,
            "\n",
            "str {item}, [{index}, {work}, lsl #3]\n",
            "add {work}, {work}, #1\n",
            "str {work}, [{index}]",
        )
    };
}

macro_rules! pop {
    ($exit:literal) => {
        concat!(
            "ldr {work}, [{index}]\n",
            "subs {work}, {work}, #1\n",
            "b.le ",
            $exit,
            "\n",
            "ldr {item}, [{index}, {work}, lsl #3]\n",
            "str {work}, [{index}]",
        )
    };
}

macro_rules! append {
    ($exit:literal) => {
        concat!(
            "ldr {work}, [{index}, #{head}]\n",
            "ldr {value}, [{index}, #{tail}]\n",
            "sub {value}, {work}, {value}\n",
            "ldr {place}, [{request}, #{needed}]\n",
            "add {value}, {value}, {place}\n",
            "ldr {place}, [{request}, #{capacity}]\n",
            "cmp {value}, {place}\n",
            "b.hi ",
            $exit,
            "\n",
            // The tail may have been moved by this very thread a moment ago, in code that this interrupts: it
            // must be seen before anything that is written into what it freed.
            "dmb ishst\n",
            "ldr {mask}, [{request}, #{mask_field}]\n",
            "add {data}, {index}, #{data_field}\n",
            "and {place}, {work}, {mask}\n",
            "ldr {number}, [{data}, {place}]\n",
            "and {number}, {number}, #{numbers}\n",
            "ldr {value}, [{request}, #{length}]\n",
            "orr {value}, {number}, {value}\n",
            "str {value}, [{data}, {place}]\n",
            "ldr {source}, [{request}, #{bytes}]\n",
            "ldr {end}, [{request}, #{end_field}]\n",
            "7:\n",
            "add {work}, {work}, #8\n",
            "and {place}, {work}, {mask}\n",
            "cmp {source}, {end}\n",
            "b.eq 8f\n",
            "ldr {value}, [{source}], #8\n",
            "str {value}, [{data}, {place}]\n",
            "b 7b\n",
            "8:\n",
            "ldr {value}, [{request}, #{rest}]\n",
            "str {value}, [{data}, {place}]\n",
            "ldr {work}, [{index}, #{head}]\n",
            "ldr {value}, [{request}, #{size}]\n",
            "add {work}, {work}, {value}\n",
            "and {place}, {work}, {mask}\n",
            "add {number}, {number}, #{one_shifted}, lsl #12\n",
            "str {number}, [{data}, {place}]\n",
            "stlr {work}, [{index}]", // the head is the first word
        )
    };
}

macro_rules! discard {
    ($exit:literal) => {
        concat!(
            "add {data}, {index}, #{data_field}\n",
            "ldr {work}, [{index}, #{tail}]\n",
            "ldr {target}, [{index}, #{head}]\n",
            "sub {target}, {target}, {keep}\n",
            "7:\n",
            "cmp {target}, {work}\n",
            "b.le 8f\n",
            "and {size}, {work}, {mask}\n",
            "ldrh {size:w}, [{data}, {size}]\n",
            "add {size}, {size}, #15\n",
            "and {size}, {size}, #-8\n",
            "add {work}, {work}, {size}\n",
            "b 7b\n",
            "8:\n",
            "str {work}, [{index}, #{tail}]",
        )
    };
}

/// Defines every operation for one source: see `x86_64.rs` for what they do and need.
macro_rules! operations {
    ($source:ident: $add:ident, $acquire:ident, $push:ident, $pop:ident, $append:ident, $discard:ident) => {
        /// See the function of this name in `x86_64.rs`.
        ///
        /// # Safety
        ///
        /// As there.
        #[inline(always)]
        pub(crate) unsafe fn $add<const DISPLACEMENT: isize>(object: usize, n: i64) -> bool {
            // SAFETY: as in `x86_64.rs`.
            unsafe {
                section!(
                    $source, add, restart { return false },
                    object = in(reg) object.wrapping_add_signed(DISPLACEMENT),
                    n = in(reg) n,
                    index = out(reg) _,
                    work = out(reg) _,
                );
            }
            true
        }

        /// See the function of this name in `x86_64.rs`.
        ///
        /// # Safety
        ///
        /// As there.
        #[inline(always)]
        pub(crate) unsafe fn $acquire<const DISPLACEMENT: isize, const CLOSED: isize>(
            object: usize,
            expected: usize,
            token: usize,
        ) -> usize {
            let shard: usize;
            // SAFETY: as in `x86_64.rs`.
            unsafe {
                section!(
                    $source, acquire, zero "{index}",
                    closed = const CLOSED,
                    object = in(reg) object.wrapping_add_signed(DISPLACEMENT),
                    expected = in(reg) expected,
                    token = in(reg) token,
                    index = out(reg) shard,
                    work = out(reg) _,
                );
            }
            if shard == 0 { 0 } else { shard.wrapping_add_signed(-DISPLACEMENT) }
        }

        /// See the function of this name in `x86_64.rs`.
        ///
        /// # Safety
        ///
        /// As there.
        #[inline(always)]
        pub(crate) unsafe fn $push<const DISPLACEMENT: isize>(
            object: usize,
            capacity: &u64,
            item: MaybeUninit<u64>,
        ) -> bool {
            // SAFETY: as in `x86_64.rs`.
            unsafe {
                section!(
                    $source, push, restart { return false },
                    object = in(reg) object.wrapping_add_signed(DISPLACEMENT),
                    capacity = in(reg) *capacity,
                    item = in(reg) item,
                    items = out(reg) _,
                    index = out(reg) _,
                    work = out(reg) _,
                );
            }
            true
        }

        /// See the function of this name in `x86_64.rs`.
        ///
        /// # Safety
        ///
        /// As there.
        #[inline(always)]
        pub(crate) unsafe fn $pop<const DISPLACEMENT: isize>(
            object: usize,
        ) -> Option<MaybeUninit<u64>> {
            let (top, item): (u64, MaybeUninit<u64>);
            // SAFETY: as in `x86_64.rs`.
            unsafe {
                section!(
                    $source, pop, zero "{work}",
                    object = in(reg) object.wrapping_add_signed(DISPLACEMENT),
                    item = out(reg) item,
                    index = out(reg) _,
                    work = out(reg) top,
                );
            }
            (top != 0).then_some(item)
        }

        /// See the function of this name in `x86_64.rs`.
        ///
        /// # Safety
        ///
        /// As there.
        #[inline(always)]
        pub(crate) unsafe fn $append<const DISPLACEMENT: isize>(
            object: usize,
            request: &Append,
        ) -> bool {
            // SAFETY: as in `x86_64.rs`.
            unsafe {
                section!(
                    $source, append, restart { return false },
                    object = in(reg) object.wrapping_add_signed(DISPLACEMENT),
                    request = in(reg) request,
                    head = const ring::HEAD,
                    tail = const ring::TAIL,
                    data_field = const ring::DATA,
                    one_shifted = const ring::ONE >> 12,
                    numbers = const ring::NUMBERS,
                    bytes = const offset_of!(Append, bytes),
                    end_field = const offset_of!(Append, end),
                    rest = const offset_of!(Append, rest),
                    length = const offset_of!(Append, length),
                    size = const offset_of!(Append, size),
                    needed = const offset_of!(Append, needed),
                    capacity = const offset_of!(Append, capacity),
                    mask_field = const offset_of!(Append, mask),
                    mask = out(reg) _,
                    data = out(reg) _,
                    end = out(reg) _,
                    index = out(reg) _,
                    work = out(reg) _,
                    place = out(reg) _,
                    value = out(reg) _,
                    number = out(reg) _,
                    source = out(reg) _,
                );
            }
            true
        }

        /// See the function of this name in `x86_64.rs`.
        ///
        /// # Safety
        ///
        /// As there.
        #[inline(always)]
        pub(crate) unsafe fn $discard<const DISPLACEMENT: isize>(
            object: usize,
            keep: u64,
            mask: u64,
        ) -> bool {
            // SAFETY: as in `x86_64.rs`.
            unsafe {
                section!(
                    $source, discard, restart { return false },
                    object = in(reg) object.wrapping_add_signed(DISPLACEMENT),
                    keep = in(reg) keep,
                    mask = in(reg) mask,
                    head = const ring::HEAD,
                    tail = const ring::TAIL,
                    data_field = const ring::DATA,
                    index = out(reg) _,
                    work = out(reg) _,
                    data = out(reg) _,
                    target = out(reg) _,
                    size = out(reg) _,
                );
            }
            true
        }
    };
}

operations!(kernel: add_kernel, acquire_kernel, push_kernel, pop_kernel, append_kernel, discard_kernel);
operations!(table: add_table, acquire_table, push_table, pop_table, append_table, discard_table);
