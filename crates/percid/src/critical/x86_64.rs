//! The critical sections in the assembly of x86-64: the parent module describes them.
//!
//! Operands: `index` and `work` are `out`, never `lateout`, so that they cannot share a register
//! with an input: after an abort the slow path still needs the inputs. `rseq_cs` is never cleared:
//! the kernel ignores it as soon as the thread is outside the section.
//!
//! The descriptor is in the section `__rseq_cs`, in which checkers find all of them. It is
//! writable, since position-independent code needs its addresses relocated. The abort pad has a
//! section of its own, so that it uses no space in the instruction cache.

/// Finds the index of this CPU's shard, or exits to `$exit`.
macro_rules! index {
    (kernel, $exit:literal) => {
        concat!(
            "mov {index:e}, dword ptr fs:[{work} + 24]\n",
            "cmp {index:e}, dword ptr [{fast_path} + {field}]\n",
            "jae ",
            $exit,
            "\n",
            "inc {index:e}\n",
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
            "\n",
        )
    };
}

/// The field of `FAST_PATH` that a source's index needs.
macro_rules! field {
    (kernel) => {
        std::mem::offset_of!($crate::critical::fast_path::FastPath, kernel_limit)
    };
    (table) => {
        std::mem::offset_of!($crate::critical::fast_path::FastPath, table)
    };
}

/// One critical section: descriptor, declaration, the index, the operation, the abort pad.
///
/// `work` holds the address of the rseq area (relative to the thread pointer) when the index is
/// read, and is free afterwards; the operation finds the address of this CPU's shard in `index`. A
/// section exits without any effect if it was aborted, found no index, or its operation jumps to
/// the exit. The exit is the label `restart`, which returns `false`. If the section has a result,
/// the exit is the label 6, with zero in the register `zero`.
macro_rules! section {
    (or false, $source:ident, [$($line:expr,)*], $($operands:tt)*) => {
        'section: {
            section!(
                @ $source, "{restart}", [$($line,)*], "jmp {restart}", "",
                restart = label { break 'section false }, $($operands)*
            );
            true
        }
    };
    (or zero $zero:literal, $source:ident, [$($line:expr,)*], $($operands:tt)*) => {
        section!(
            @ $source, "6f", [$($line,)*],
            concat!("jmp 6f\n", "6:\n", "xor ", $zero, ", ", $zero, "\n", "jmp 5f"), "5:",
            $($operands)*
        )
    };
    (@ $source:ident, $exit:literal, [$($line:expr,)*], $pad:expr, $behind:literal, $($operands:tt)*) => {
        std::arch::asm!(
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
            $($line,)*
            "3:",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".byte 0x0f, 0xb9, 0x3d", // with the signature: ud1 edi, [rip + signature]
            ".long 0x53053053",
            "4:",
            $pad,
            ".popsection",
            $behind,
            fast_path = in(reg) &raw const $crate::critical::fast_path::FAST_PATH,
            area = const std::mem::offset_of!($crate::critical::fast_path::FastPath, area),
            field = const field!($source),
            shift = const $crate::arena::SHIFT,
            $($operands)*
            options(nostack)
        )
    };
}

/// The parent module explains the form of this operation.
macro_rules! add {
    ($source:ident, $displacement:expr, $word:expr, $n:expr) => {{
        section!(
            or false, $source,
            [
                "mov {work}, qword ptr [{index} + {displacement}]",
                "add {work}, {n}",
                "mov qword ptr [{index} + {displacement}], {work}",
            ],
            displacement = const $displacement,
            object = in(reg) $word,
            n = in(reg) $n,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

macro_rules! add_float {
    ($source:ident, $displacement:expr, $word:expr, $n:expr) => {{
        section!(
            or false, $source,
            [
                "movsd {sum}, qword ptr [{index} + {displacement}]",
                "addsd {sum}, {n}",
                "movsd qword ptr [{index} + {displacement}], {sum}",
            ],
            displacement = const $displacement,
            object = in(reg) $word,
            n = in(xmm_reg) $n,
            sum = out(xmm_reg) _,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

/// The next journal is computed for both cases, since each journal depends on the one before. The
/// count is loaded before the last one is stored: after a store to an address that comes from
/// memory, the processor would have to predict whether the load is of the same word.
macro_rules! tally {
    ($source:ident, $displacement:expr, $word:expr, $place:expr, $times:expr, $sum:expr) => {{
        section!(
            or false, $source,
            [
                "cmp qword ptr [{index} + {displacement}], {ready}",
                "jne {restart}",
                "mov {work}, qword ptr [{index} + {journal}]",
                "mov {now}, qword ptr [{index} + {place} + {counts}]",
                "mov {last:e}, {work:e}",
                "mov {other}, {work}",
                "and {last:e}, {places}",
                "shr {other}, {count_shift}",
                "mov qword ptr [{index} + {last} + {counts}], {other}",
                "mov {other:e}, {work:e}",
                "and {other:e}, 1",
                "movsd {total}, qword ptr [{index} + {other} * 8 + {sums}]",
                "addsd {total}, {sum}",
                "xor {other:e}, 1",
                "movsd qword ptr [{index} + {other} * 8 + {sums}], {total}",
                // Another bucket than the last: its count from memory.
                "add {now}, {times}",
                "shl {now}, {count_shift}",
                "or {now}, {place}",
                "or {now}, {other}",
                // The same: the journal's count.
                "mov {other}, {times}",
                "shl {other}, {count_shift}",
                "add {work}, {other}",
                "xor {work}, 1",
                "cmp {last}, {place}",
                "cmove {now}, {work}",
                "mov qword ptr [{index} + {journal}], {now}",
            ],
            object = in(reg) $word,
            place = in(reg) $place,
            times = in(reg) $times,
            sum = in(xmm_reg) $sum,
            displacement = const $displacement,
            ready = const $crate::critical::words::READY,
            journal = const $displacement + $crate::critical::tally::JOURNAL as isize,
            sums = const $displacement + $crate::critical::tally::SUMS as isize,
            counts = const $displacement + $crate::critical::tally::COUNTS as isize,
            places = const $crate::critical::tally::PLACES,
            count_shift = const $crate::critical::tally::COUNT_SHIFT,
            total = out(xmm_reg) _,
            now = out(reg) _,
            last = out(reg) _,
            other = out(reg) _,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

macro_rules! acquire {
    ($source:ident, $displacement:expr, $word:expr, $closed:expr, $expected:expr, $token:expr) => {{
        let shard: usize;
        section!(
            or zero "{index:e}", $source,
            [
                "cmp qword ptr [{index} + {closed}], 0",
                "jne 6f",
                "cmp qword ptr [{index} + {displacement}], {expected}",
                "jne 6f",
                "mov qword ptr [{index} + {displacement}], {token}",
            ],
            displacement = const $displacement,
            closed = const $displacement + $closed,
            object = in(reg) $word,
            expected = in(reg) $expected,
            token = in(reg) $token,
            index = out(reg) shard,
            work = out(reg) _,
        );
        shard
    }};
}

macro_rules! push {
    ($source:ident, $displacement:expr, $word:expr, $capacity:expr, $item:expr) => {{
        section!(
            or false, $source,
            [
                "mov {work}, qword ptr [{index} + {displacement}]",
                "lea {items}, [{work} - 1]",
                "cmp {items}, qword ptr [{capacity}]",
                "jae {restart}", // full, inactive (0) or seized (negative)
                "mov qword ptr [{index} + {work} * 8 + {displacement}], {item}",
                "inc {work}",
                "mov qword ptr [{index} + {displacement}], {work}",
            ],
            displacement = const $displacement,
            object = in(reg) $word,
            capacity = in(reg) $capacity,
            item = in(reg) $item,
            items = out(reg) _,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

macro_rules! pop {
    ($source:ident, $displacement:expr, $word:expr) => {{
        let (top, item): (u64, std::mem::MaybeUninit<u64>);
        section!(
            or zero "{work:e}", $source,
            [
                "mov {work}, qword ptr [{index} + {displacement}]",
                "sub {work}, 1",
                "jle 6f", // empty, inactive (0) or seized (negative, also the most negative)
                "mov {item}, qword ptr [{index} + {work} * 8 + {displacement}]",
                "mov qword ptr [{index} + {displacement}], {work}",
            ],
            displacement = const $displacement,
            object = in(reg) $word,
            item = out(reg) item,
            index = out(reg) _,
            work = out(reg) top,
        );
        (top != 0).then_some(item)
    }};
}

macro_rules! append {
    ($source:ident, $displacement:expr, $word:expr, $request:expr) => {{
        section!(
            or false, $source,
            [
                // Room: head - tail + needed <= capacity.
                "mov {work}, qword ptr [{index} + {head}]",
                "mov {value}, {work}",
                "sub {value}, qword ptr [{index} + {tail}]",
                "add {value}, qword ptr [{request} + {needed}]",
                "cmp {value}, qword ptr [{request} + {capacity}]",
                "ja {restart}",
                // The header: it contains the record's number already.
                "mov {place}, {work}",
                "and {place}, qword ptr [{request} + {mask}]",
                "mov {number}, qword ptr [{index} + {place} + {data}]",
                "and {number}, {numbers}", // an aborted try may have left its length
                "mov {value}, {number}",
                "or {value}, qword ptr [{request} + {length}]",
                "mov qword ptr [{index} + {place} + {data}], {value}",
                // The whole words.
                "mov {source}, qword ptr [{request} + {bytes}]",
                "7:",
                "add {work}, 8",
                "mov {place}, {work}",
                "and {place}, qword ptr [{request} + {mask}]",
                "cmp {source}, qword ptr [{request} + {end}]",
                "je 8f",
                "mov {value}, qword ptr [{source}]",
                "mov qword ptr [{index} + {place} + {data}], {value}",
                "add {source}, 8",
                "jmp 7b",
                // The rest, or a value that the next number will overwrite.
                "8:",
                "mov {value}, qword ptr [{request} + {rest}]",
                "mov qword ptr [{index} + {place} + {data}], {value}",
                // The number of the next record.
                "mov {work}, qword ptr [{index} + {head}]",
                "add {work}, qword ptr [{request} + {size}]",
                "mov {place}, {work}",
                "and {place}, qword ptr [{request} + {mask}]",
                "add {number}, {one}",
                "mov qword ptr [{index} + {place} + {data}], {number}",
                "mov qword ptr [{index} + {head}], {work}",
            ],
            object = in(reg) $word,
            request = in(reg) $request,
            head = const $displacement + $crate::critical::ring::HEAD as isize,
            tail = const $displacement + $crate::critical::ring::TAIL as isize,
            data = const $displacement + $crate::critical::ring::DATA as isize,
            one = const $crate::critical::ring::ONE,
            numbers = const $crate::critical::ring::NUMBERS,
            bytes = const std::mem::offset_of!($crate::critical::ring::Append, bytes),
            end = const std::mem::offset_of!($crate::critical::ring::Append, end),
            rest = const std::mem::offset_of!($crate::critical::ring::Append, rest),
            length = const std::mem::offset_of!($crate::critical::ring::Append, length),
            size = const std::mem::offset_of!($crate::critical::ring::Append, size),
            needed = const std::mem::offset_of!($crate::critical::ring::Append, needed),
            capacity = const std::mem::offset_of!($crate::critical::ring::Append, capacity),
            mask = const std::mem::offset_of!($crate::critical::ring::Append, mask),
            index = out(reg) _,
            work = out(reg) _,
            place = out(reg) _,
            value = out(reg) _,
            number = out(reg) _,
            source = out(reg) _,
        )
    }};
}

macro_rules! discard {
    ($source:ident, $displacement:expr, $word:expr, $keep:expr, $mask:expr) => {{
        section!(
            or false, $source,
            [
                "mov {work}, qword ptr [{index} + {tail}]",
                "mov {target}, qword ptr [{index} + {head}]",
                "sub {target}, {keep}",
                "7:",
                "mov {size}, {target}",
                "sub {size}, {work}",
                "jle 8f",
                "mov {size}, {work}",
                "and {size}, {mask}",
                "movzx {size:e}, word ptr [{index} + {size} + {data}]",
                "add {size}, 15",
                "and {size}, -8",
                "add {work}, {size}",
                "jmp 7b",
                "8:",
                "mov qword ptr [{index} + {tail}], {work}",
            ],
            object = in(reg) $word,
            keep = in(reg) $keep,
            mask = in(reg) $mask,
            head = const $displacement + $crate::critical::ring::HEAD as isize,
            tail = const $displacement + $crate::critical::ring::TAIL as isize,
            data = const $displacement + $crate::critical::ring::DATA as isize,
            index = out(reg) _,
            work = out(reg) _,
            target = out(reg) _,
            size = out(reg) _,
        )
    }};
}
