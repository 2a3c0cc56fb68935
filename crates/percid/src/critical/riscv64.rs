//! The critical sections in the assembly of 64-bit RISC-V: the parent module describes them.
//!
//! The file is like `x86_64.rs`, with these differences.
//!
//! * Only loads and stores access memory, at a register and 12 bits of displacement: operations
//!   take registers for addresses. They use only the base instructions (RV64I); the assembler
//!   compresses some, so an instruction has two or four bytes.
//! * A conditional branch reaches 4 KiB and a jump 1 MiB, and no linker fixes those that are out of
//!   range. Conditional branches stay in the function, where the assembler makes two instructions
//!   of one that is too far. A pad, in a section of its own, leaves by an address of 32 bits.
//! * Linkers shorten code (*relaxation*), and then the following code moves by two or four bytes.
//!   Nothing between the labels of a section is shortened, and the linker computes the length. The
//!   pads forbid relaxation: so each signature stays aligned, as the kernel's load of it requires.
//! * A record's bytes may lie at any address, and a load of a word from there may trap into
//!   firmware. Its words are built from aligned ones, none of which reaches beyond the page that
//!   the record ends in.
//!
//! # Order
//!
//! The code relies on no stronger memory order than the C++ model's. If a thread on another CPU
//! reads without a fence, a `fence` instruction provides the order that acquiring loads and
//! releasing stores provide on Arm.
//!
//! * acquire: `fence r, rw` behind the load that finds the shard open keeps the load of the state
//!   behind it. The one behind the load of the state keeps everything that the owner does next
//!   behind it. So the owner sees what the last visitor or owner did before its releasing store.
//! * append: `fence w, w` precedes the first store into the ring, for a tail that the same thread
//!   has moved in code that this operation interrupts. `fence rw, w` precedes the commit: a thread
//!   that sees the head sees the record. (The branch between orders the load of the tail before any
//!   store into the part that another CPU freed: a store waits for earlier branches.)
//! * tally: `fence w, w` precedes the first store. A thread that sees the value written to the
//!   former sum, or to the last count, sees the journal that made that word meaningless. `fence rw,
//!   w` precedes the commit: a thread that sees a journal sees the sum and the counts that belong
//!   to it.
//! * all others: other CPUs see what they commit only after a fence (`membarrier`), which orders
//!   both sides; this CPU sees it in program order.
//! * the index: its load follows the store of `rseq_cs` in program order, and the kernel changes
//!   the index on this CPU, between two instructions. From the index to the address, and from the
//!   table's address to its entry, there is a dependency, which orders loads here as well.
//!
//! The signature is the one of the C library and of `librseq` (`rseq-riscv.h`): an instruction that
//! no program may execute, `csrw mhartid, zero`.

macro_rules! index {
    (kernel, $exit:literal) => {
        concat!(
            "lwu {index}, 24({area})\n",
            "lwu {work}, {field}({fast_path})\n",
            "bgeu {index}, {work}, ",
            $exit,
            "\n",
            "addi {index}, {index}, 1\n",
        )
    };
    (table, $exit:literal) => {
        concat!(
            "lw {index}, 4({area})\n",
            "ld {work}, {field}({fast_path})\n",
            "slli {index}, {index}, 2\n",
            "add {index}, {index}, {work}\n",
            "lwu {index}, 0({index})\n",
            "beqz {index}, ",
            $exit,
            "\n",
        )
    };
}

macro_rules! field {
    (kernel) => {
        std::mem::offset_of!($crate::critical::fast_path::FastPath, kernel_limit)
    };
    (table) => {
        std::mem::offset_of!($crate::critical::fast_path::FastPath, table)
    };
}

macro_rules! section {
    (or false, $source:ident, [$($line:expr,)*], $($operands:tt)*) => {
        'section: {
            section!(
                @ $source, "{restart}", [$($line,)*], "jump {restart}, {index}", "",
                restart = label { break 'section false }, $($operands)*
            );
            true
        }
    };
    (or zero $zero:literal, $source:ident, [$($line:expr,)*], $($operands:tt)*) => {
        section!(
            @ $source, "6f", [$($line,)*], "jump 6f, {index}",
            concat!("j 5f\n", "6:\n", "li ", $zero, ", 0\n", "5:"),
            $($operands)*
        )
    };
    (@ $source:ident, $exit:literal, [$($line:expr,)*], $pad:literal, $behind:expr, $($operands:tt)*) => {
        std::arch::asm!(
            ".pushsection __rseq_cs, \"aw\", @progbits",
            ".balign 32",
            "9:",
            ".word 0, 0",             // version, flags
            ".quad 2f, 3f - 2f, 4f",  // start, length, abort
            ".popsection",
            "lla {index}, 9b",
            "sd {index}, 8({area})",
            "2:",
            index!($source, $exit),
            "slli {index}, {index}, {shift}",
            "add {index}, {index}, {object}",
            $($line,)*
            "3:",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".option push",
            ".option norelax",
            ".balign 4",
            ".4byte 0xf1401073", // the signature: csrw mhartid, zero
            "4:",
            $pad,
            ".option pop",
            ".popsection",
            $behind,
            area = in(reg) $crate::sys::thread::at($crate::critical::fast_path::FAST_PATH.area()),
            fast_path = in(reg) &raw const $crate::critical::fast_path::FAST_PATH,
            field = const field!($source),
            shift = const $crate::arena::SHIFT,
            $($operands)*
            options(nostack)
        )
    };
}

macro_rules! add {
    ($source:ident, $displacement:expr, $word:expr, $n:expr) => {{
        section!(
            or false, $source,
            [
                "ld {work}, 0({index})",
                "add {work}, {work}, {n}",
                "sd {work}, 0({index})",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
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
                "fld {sum}, 0({index})",
                "fadd.d {sum}, {sum}, {n}",
                "fsd {sum}, 0({index})",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            n = in(freg) $n,
            sum = out(freg) _,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

macro_rules! tally {
    ($source:ident, $displacement:expr, $word:expr, $place:expr, $times:expr, $sum:expr) => {{
        section!(
            or false, $source,
            [
                "ld {work}, 0({index})",
                "addi {work}, {work}, -{ready}",
                "bnez {work}, {restart}",
                "fence r, rw",
                "addi {index}, {index}, {journal}",
                "ld {work}, 0({index})",
                "fence w, w",
                "add {now}, {place}, {index}",
                "ld {now}, {counts}({now})",
                "srli {count}, {work}, {count_shift}",
                "slli {last}, {work}, {above_places}",
                "srli {last}, {last}, {above_places}",
                "andi {last}, {last}, -8", // without the sum's number
                "bne {last}, {place}, 7f",
                "mv {now}, {count}",
                "7:",
                "add {last}, {last}, {index}",
                "sd {count}, {counts}({last})",
                "andi {work}, {work}, 1",
                "slli {last}, {work}, 3",
                "add {last}, {last}, {index}",
                "fld {total}, {sums}({last})",
                "fadd.d {total}, {total}, {sum}",
                "xori {work}, {work}, 1",
                "slli {last}, {work}, 3",
                "add {last}, {last}, {index}",
                "fsd {total}, {sums}({last})",
                "add {now}, {now}, {times}",
                "slli {now}, {now}, {count_shift}",
                "or {now}, {now}, {place}",
                "or {now}, {now}, {work}",
                "fence rw, w",
                "sd {now}, 0({index})",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            place = in(reg) $place,
            times = in(reg) $times,
            sum = in(freg) $sum,
            ready = const $crate::critical::words::READY,
            journal = const $crate::critical::tally::JOURNAL,
            sums = const $crate::critical::tally::SUMS - $crate::critical::tally::JOURNAL,
            counts = const $crate::critical::tally::COUNTS - $crate::critical::tally::JOURNAL,
            count_shift = const $crate::critical::tally::COUNT_SHIFT,
            above_places = const 64 - $crate::critical::tally::COUNT_SHIFT,
            total = out(freg) _,
            now = out(reg) _,
            last = out(reg) _,
            count = out(reg) _,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

macro_rules! acquire {
    ($source:ident, $displacement:expr, $word:expr, $closed:expr, $expected:expr, $token:expr) => {{
        let shard: usize;
        section!(
            or zero "{index}", $source,
            [
                "ld {work}, {closed}({index})",
                "bnez {work}, 6f",
                "fence r, rw",
                "ld {work}, 0({index})",
                "bne {work}, {expected}, 6f",
                "fence r, rw",
                "sd {token}, 0({index})",
            ],
            closed = const $closed,
            object = in(reg) $word.wrapping_add_signed($displacement),
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
                "ld {work}, 0({index})",
                "addi {place}, {work}, -1",
                "bgeu {place}, {capacity}, {restart}", // full, inactive (0) or seized (negative)
                "slli {place}, {work}, 3",
                "add {place}, {place}, {index}",
                "sd {item}, 0({place})",
                "addi {work}, {work}, 1",
                "sd {work}, 0({index})",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            capacity = in(reg) *$capacity,
            item = in(reg) $item,
            place = out(reg) _,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

macro_rules! pop {
    ($source:ident, $displacement:expr, $word:expr) => {{
        let (top, item): (u64, std::mem::MaybeUninit<u64>);
        section!(
            or zero "{work}", $source,
            [
                "ld {work}, 0({index})",
                "li {item}, 1",
                "ble {work}, {item}, 6f", // empty, inactive (0) or seized (negative)
                "addi {work}, {work}, -1",
                "slli {item}, {work}, 3",
                "add {item}, {item}, {index}",
                "ld {item}, 0({item})",
                "sd {work}, 0({index})",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
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
                "ld {work}, {head}({index})",
                "ld {value}, {tail}({index})",
                "sub {value}, {work}, {value}",
                "ld {place}, {needed}({request})",
                "add {value}, {value}, {place}",
                "ld {place}, {capacity}({request})",
                "bgtu {value}, {place}, {restart}",
                // The same thread may have moved the tail shortly before, in code that this
                // operation interrupts. Another CPU must see the tail before anything that is
                // written into the freed part.
                "fence w, w",
                // The header: it contains the record's number already.
                "ld {mask}, {mask_field}({request})",
                "addi {data}, {index}, {data_field}",
                "and {place}, {work}, {mask}",
                "add {place}, {place}, {data}",
                "ld {number}, 0({place})",
                "srli {number}, {number}, {length_bits}", // an aborted try may have left its length
                "slli {number}, {number}, {length_bits}",
                "ld {value}, {length}({request})",
                "or {value}, {value}, {number}",
                "sd {value}, 0({place})",
                // The whole words. Each lies in one aligned word or in two, of which the first
                // `bits` bits do not belong to it. If it lies in one, that word is loaded twice.
                "ld {source}, {bytes}({request})",
                "ld {end}, {end_field}({request})",
                "slli {bits}, {source}, 3", // shifts look at the lowest 6 bits
                "7:",
                "addi {work}, {work}, 8",
                "and {place}, {work}, {mask}",
                "add {place}, {place}, {data}",
                "beq {source}, {end}, 8f",
                "andi {value}, {source}, -8",
                "ld {value}, 0({value})",
                "addi {source}, {source}, 7",
                "andi {upper}, {source}, -8",
                "ld {upper}, 0({upper})",
                "addi {source}, {source}, 1",
                "srl {value}, {value}, {bits}",
                "slli {upper}, {upper}, 1",
                "not {bits}, {bits}",
                "sll {upper}, {upper}, {bits}", // by 64 less the bits, or, of none, all is gone
                "not {bits}, {bits}",
                "or {value}, {value}, {upper}",
                "sd {value}, 0({place})",
                "j 7b",
                // The rest, or a value that the next number will overwrite.
                "8:",
                "ld {value}, {rest}({request})",
                "sd {value}, 0({place})",
                // The number of the next record.
                "ld {work}, {head}({index})",
                "ld {value}, {size}({request})",
                "add {work}, {work}, {value}",
                "and {place}, {work}, {mask}",
                "add {place}, {place}, {data}",
                "lui {value}, {one_upper}",
                "add {number}, {number}, {value}",
                "sd {number}, 0({place})",
                "fence rw, w",
                "sd {work}, {head}({index})",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            request = in(reg) $request,
            head = const $crate::critical::ring::HEAD,
            tail = const $crate::critical::ring::TAIL,
            data_field = const $crate::critical::ring::DATA,
            one_upper = const $crate::critical::ring::ONE >> 12,
            length_bits = const $crate::critical::ring::LENGTH_BITS,
            bytes = const std::mem::offset_of!($crate::critical::ring::Append, bytes),
            end_field = const std::mem::offset_of!($crate::critical::ring::Append, end),
            rest = const std::mem::offset_of!($crate::critical::ring::Append, rest),
            length = const std::mem::offset_of!($crate::critical::ring::Append, length),
            size = const std::mem::offset_of!($crate::critical::ring::Append, size),
            needed = const std::mem::offset_of!($crate::critical::ring::Append, needed),
            capacity = const std::mem::offset_of!($crate::critical::ring::Append, capacity),
            mask_field = const std::mem::offset_of!($crate::critical::ring::Append, mask),
            mask = out(reg) _,
            data = out(reg) _,
            end = out(reg) _,
            index = out(reg) _,
            work = out(reg) _,
            place = out(reg) _,
            value = out(reg) _,
            upper = out(reg) _,
            bits = out(reg) _,
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
                "addi {data}, {index}, {data_field}",
                "ld {work}, {tail}({index})",
                "ld {target}, {head}({index})",
                "sub {target}, {target}, {keep}",
                "7:",
                "ble {target}, {work}, 8f",
                "and {size}, {work}, {mask}",
                "add {size}, {size}, {data}",
                "lhu {size}, 0({size})",
                "addi {size}, {size}, 15",
                "andi {size}, {size}, -8",
                "add {work}, {work}, {size}",
                "j 7b",
                "8:",
                "sd {work}, {tail}({index})",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            keep = in(reg) $keep,
            mask = in(reg) $mask,
            head = const $crate::critical::ring::HEAD,
            tail = const $crate::critical::ring::TAIL,
            data_field = const $crate::critical::ring::DATA,
            index = out(reg) _,
            work = out(reg) _,
            data = out(reg) _,
            target = out(reg) _,
            size = out(reg) _,
        )
    }};
}
