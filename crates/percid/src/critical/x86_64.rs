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
use std::mem::{MaybeUninit, offset_of};

use super::{Append, FAST_PATH, FastPath, ring};
use crate::arena::SHIFT;

/// Finds the index of this CPU's shard, or leaves for `$exit`. See the module above for the two sources.
macro_rules! index {
    (kernel, $exit:literal) => {
        concat!(
            "mov {index:e}, dword ptr fs:[{work} + 24]\n",
            "cmp {index:e}, dword ptr [{fast_path} + {field}]\n",
            "jae ",
            $exit,
            "\n",
            "inc {index:e}",
        )
    };
    (table, $exit:literal) => {
        concat!(
            "movsxd {index}, dword ptr fs:[{work} + 4]\n",
            "mov {work}, qword ptr [{fast_path} + {field}]\n",
            "mov {index:e}, dword ptr [{work} + {index} * 4]\n",
            "test {index:e}, {index:e}\n",
            "jz ",
            $exit,
        )
    };
}

/// The field of [`FAST_PATH`] that a source's index needs.
macro_rules! field {
    (kernel) => {
        offset_of!(FastPath, kernel_limit)
    };
    (table) => {
        offset_of!(FastPath, table)
    };
}

/// One critical section: descriptor, declaration, the index, the operation, the abort pad.
///
/// `work` holds the address of the rseq area (relative to the thread pointer) when the index is read, and
/// is free afterwards; the operation finds the address of this CPU's shard in `index`. A section leaves
/// without having done anything if it was aborted, found no index, or its operation jumps to the exit:
/// through the block `restart`, or, where it has results, with zero in the register `zero`.
macro_rules! section {
    ($source:ident, $operation:ident, restart $restart:block, $($operands:tt)*) => {
        section!(
            @ $source, "{restart}", $operation, "jmp {restart}", "",
            restart = label $restart, $($operands)*
        )
    };
    ($source:ident, $operation:ident, zero $zero:literal, $($operands:tt)*) => {
        section!(
            @ $source, "6f", $operation,
            concat!("jmp 6f\n", "6:\n", "xor ", $zero, ", ", $zero, "\n", "jmp 5f"), "5:",
            $($operands)*
        )
    };
    (@ $source:ident, $exit:literal, $operation:ident, $pad:expr, $behind:literal, $($operands:tt)*) => {
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
            index!($source, $exit),
            "shl {index}, {shift}",
            "add {index}, {object}",
            $operation!($exit),
            "3:",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".byte 0x0f, 0xb9, 0x3d", // with the signature: ud1 edi, [rip + signature]
            ".long 0x53053053",
            "4:",
            $pad,
            ".popsection",
            $behind,
            fast_path = in(reg) &raw const FAST_PATH,
            area = const offset_of!(FastPath, area),
            field = const field!($source),
            shift = const SHIFT,
            $($operands)*
            options(nostack)
        )
    };
}

/// See the module above for the shape of this.
macro_rules! add {
    ($exit:literal) => {
        concat!(
            "mov {work}, {n}\n",
            "add {work}, qword ptr [{index} + {displacement}]\n",
            "mov qword ptr [{index} + {displacement}], {work}",
        )
    };
}

macro_rules! acquire {
    ($exit:literal) => {
        concat!(
            "cmp qword ptr [{index} + {closed}], 0\n",
            "jne ",
            $exit,
            "\n",
            "cmp qword ptr [{index} + {displacement}], {expected}\n",
            "jne ",
            $exit,
            "\n",
            "mov qword ptr [{index} + {displacement}], {token}",
        )
    };
}

macro_rules! push {
    ($exit:literal) => {
        concat!(
            "mov {work}, qword ptr [{index} + {displacement}]\n",
            "lea {items}, [{work} - 1]\n",
            "cmp {items}, qword ptr [{capacity}]\n",
            "jae ",
            $exit,
            "\n", // full, inactive (0) or seized (negative)
            "mov qword ptr [{index} + {work} * 8 + {displacement}], {item}\n",
            "inc {work}\n",
            "mov qword ptr [{index} + {displacement}], {work}",
        )
    };
}

macro_rules! pop {
    ($exit:literal) => {
        concat!(
            "mov {work}, qword ptr [{index} + {displacement}]\n",
            "sub {work}, 1\n",
            "jle ",
            $exit,
            "\n", // empty, inactive (0) or seized (negative, also the most negative)
            "mov {item}, qword ptr [{index} + {work} * 8 + {displacement}]\n",
            "mov qword ptr [{index} + {displacement}], {work}",
        )
    };
}

macro_rules! append {
    ($exit:literal) => {
        concat!(
            // Room: head - tail + needed <= capacity.
            "mov {work}, qword ptr [{index} + {head}]\n",
            "mov {value}, {work}\n",
            "sub {value}, qword ptr [{index} + {tail}]\n",
            "add {value}, qword ptr [{request} + {needed}]\n",
            "cmp {value}, qword ptr [{request} + {capacity}]\n",
            "ja ",
            $exit,
            "\n",
            // The header: its number is there already.
            "mov {place}, {work}\n",
            "and {place}, qword ptr [{request} + {mask}]\n",
            "mov {number}, qword ptr [{index} + {place} + {data}]\n",
            "and {number}, {numbers}\n", // an aborted try may have left its length
            "mov {value}, {number}\n",
            "or {value}, qword ptr [{request} + {length}]\n",
            "mov qword ptr [{index} + {place} + {data}], {value}\n",
            // The whole words.
            "mov {source}, qword ptr [{request} + {bytes}]\n",
            "7:\n",
            "add {work}, 8\n",
            "mov {place}, {work}\n",
            "and {place}, qword ptr [{request} + {mask}]\n",
            "cmp {source}, qword ptr [{request} + {end}]\n",
            "je 8f\n",
            "mov {value}, qword ptr [{source}]\n",
            "mov qword ptr [{index} + {place} + {data}], {value}\n",
            "add {source}, 8\n",
            "jmp 7b\n",
            // The rest, or something that the next number is about to overwrite.
            "8:\n",
            "mov {value}, qword ptr [{request} + {rest}]\n",
            "mov qword ptr [{index} + {place} + {data}], {value}\n",
            // The number of the next record.
            "mov {work}, qword ptr [{index} + {head}]\n",
            "add {work}, qword ptr [{request} + {size}]\n",
            "mov {place}, {work}\n",
            "and {place}, qword ptr [{request} + {mask}]\n",
            "add {number}, {one}\n",
            "mov qword ptr [{index} + {place} + {data}], {number}\n",
            "mov qword ptr [{index} + {head}], {work}",
        )
    };
}

macro_rules! discard {
    ($exit:literal) => {
        concat!(
            "mov {work}, qword ptr [{index} + {tail}]\n",
            "mov {target}, qword ptr [{index} + {head}]\n",
            "sub {target}, {keep}\n",
            "7:\n",
            "mov {size}, {target}\n",
            "sub {size}, {work}\n",
            "jle 8f\n",
            "mov {size}, {work}\n",
            "and {size}, {mask}\n",
            "movzx {size:e}, word ptr [{index} + {size} + {data}]\n",
            "add {size}, 15\n",
            "and {size}, -8\n",
            "add {work}, {size}\n",
            "jmp 7b\n",
            "8:\n",
            "mov qword ptr [{index} + {tail}], {work}",
        )
    };
}

/// Defines every operation for one source.
macro_rules! operations {
    ($source:ident: $add:ident, $acquire:ident, $push:ident, $pop:ident, $append:ident, $discard:ident) => {
        /// Adds `n` to this CPU's shard of the word at `object`. Answers whether it did.
        ///
        /// # Safety
        ///
        /// `object + DISPLACEMENT` is the address of a word in a block of the arena, in the shared slot,
        /// and this source has been prepared (so `FAST_PATH` is set, and leads to an rseq area in every
        /// thread).
        #[inline(always)]
        pub(crate) unsafe fn $add<const DISPLACEMENT: isize>(object: usize, n: i64) -> bool {
            // SAFETY: obligations 1 to 5 of the module `critical`; only scratch registers are written
            // before the commit.
            unsafe {
                section!(
                    $source, add, restart { return false },
                    displacement = const DISPLACEMENT,
                    object = in(reg) object,
                    n = in(reg) n,
                    index = out(reg) _,
                    work = out(reg) _,
                );
            }
            true
        }

        /// Stores `token` in this CPU's shard of the word at `object` if `expected` is there, and zero in the
        /// word `CLOSED` bytes behind it. Answers with the address of that shard (its displacement not
        /// applied); 0 if it did not store.
        ///
        /// # Safety
        ///
        /// As the addition of this source.
        #[inline(always)]
        pub(crate) unsafe fn $acquire<const DISPLACEMENT: isize, const CLOSED: isize>(
            object: usize,
            expected: usize,
            token: usize,
        ) -> usize {
            let shard: usize;
            // SAFETY: as for the addition. Loads and stores are ordered as on this architecture: what
            // the last owner wrote before it released the word is seen after the comparison.
            unsafe {
                section!(
                    $source, acquire, zero "{index:e}",
                    displacement = const DISPLACEMENT,
                    closed = const DISPLACEMENT + CLOSED,
                    object = in(reg) object,
                    expected = in(reg) expected,
                    token = in(reg) token,
                    index = out(reg) shard,
                    work = out(reg) _,
                );
            }
            shard
        }

        /// Pushes `item` on this CPU's stack. Answers whether it did; it does not if there is no room, or
        /// the stack is inactive or seized.
        ///
        /// # Safety
        ///
        /// `object + DISPLACEMENT` is the address of a stack's block (see [`stack`](crate::stack)) in the
        /// shared slot, `capacity` is that of the stack, and this source has been prepared.
        #[inline(always)]
        pub(crate) unsafe fn $push<const DISPLACEMENT: isize>(
            object: usize,
            capacity: &u64,
            item: MaybeUninit<u64>,
        ) -> bool {
            // SAFETY: obligations 1 to 5. Before the commit only the slot above the top is written,
            // which is nobody's. It is a slot of the block: less one it is below the capacity.
            unsafe {
                section!(
                    $source, push, restart { return false },
                    displacement = const DISPLACEMENT,
                    object = in(reg) object,
                    capacity = in(reg) capacity,
                    item = in(reg) item,
                    items = out(reg) _,
                    index = out(reg) _,
                    work = out(reg) _,
                );
            }
            true
        }

        /// Pops an item from this CPU's stack. `None` if there is none, or the stack is inactive or seized.
        ///
        /// # Safety
        ///
        /// As the push of this source.
        #[inline(always)]
        pub(crate) unsafe fn $pop<const DISPLACEMENT: isize>(
            object: usize,
        ) -> Option<MaybeUninit<u64>> {
            let (top, item): (u64, MaybeUninit<u64>);
            // SAFETY: obligations 1 to 5; only scratch registers are written before the commit. The slot
            // below the top is one of the block's, and has an item.
            unsafe {
                section!(
                    $source, pop, zero "{work:e}",
                    displacement = const DISPLACEMENT,
                    object = in(reg) object,
                    item = out(reg) item,
                    index = out(reg) _,
                    work = out(reg) top,
                );
            }
            (top != 0).then_some(item)
        }

        /// Appends a record to this CPU's ring. Answers whether it did; it does not if there is no room.
        ///
        /// # Safety
        ///
        /// `object + DISPLACEMENT` is the address of a ring's block (see [`ring`](crate::ring)) in the
        /// shared slot, this source has been prepared, and the request fits the ring.
        #[inline(always)]
        pub(crate) unsafe fn $append<const DISPLACEMENT: isize>(
            object: usize,
            request: &Append,
        ) -> bool {
            // SAFETY: obligations 1 to 5. Before the commit only the part between head and tail is
            // written, in which no record lies; the mask keeps every place inside the data.
            unsafe {
                section!(
                    $source, append, restart { return false },
                    object = in(reg) object,
                    request = in(reg) request,
                    head = const DISPLACEMENT + ring::HEAD as isize,
                    tail = const DISPLACEMENT + ring::TAIL as isize,
                    data = const DISPLACEMENT + ring::DATA as isize,
                    one = const ring::ONE,
                    numbers = const ring::NUMBERS,
                    bytes = const offset_of!(Append, bytes),
                    end = const offset_of!(Append, end),
                    rest = const offset_of!(Append, rest),
                    length = const offset_of!(Append, length),
                    size = const offset_of!(Append, size),
                    needed = const offset_of!(Append, needed),
                    capacity = const offset_of!(Append, capacity),
                    mask = const offset_of!(Append, mask),
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

        /// Discards the oldest records of this CPU's ring until at most `keep` bytes are left. Answers
        /// whether it did.
        ///
        /// # Safety
        ///
        /// As the appending of this source, and `mask` is the ring's capacity less one.
        #[inline(always)]
        pub(crate) unsafe fn $discard<const DISPLACEMENT: isize>(
            object: usize,
            keep: u64,
            mask: u64,
        ) -> bool {
            // SAFETY: obligations 1 to 5; only scratch registers are written before the commit. Whole
            // records lie between tail and head, so the loop meets their ends; it reads inside the data.
            unsafe {
                section!(
                    $source, discard, restart { return false },
                    object = in(reg) object,
                    keep = in(reg) keep,
                    mask = in(reg) mask,
                    head = const DISPLACEMENT + ring::HEAD as isize,
                    tail = const DISPLACEMENT + ring::TAIL as isize,
                    data = const DISPLACEMENT + ring::DATA as isize,
                    index = out(reg) _,
                    work = out(reg) _,
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
