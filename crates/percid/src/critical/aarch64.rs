//! The critical sections in the assembly of 64-bit Arm: the parent module describes them.
//!
//! The file is like `x86_64.rs`, with these differences. Operations take a second scratch register,
//! since only loads and stores access memory. Distant addresses are built from page and offset.
//! Conditional branches do not reach into another section, so the exit with a result lies behind
//! the function's own code. The linker may insert a veneer between the section and its pad, which
//! destroys x16 and x17. If a thread on another CPU reads without a fence, loads acquire and the
//! commit releases.

macro_rules! index {
    (kernel, $exit:literal) => {
        concat!(
            "ldr {index:w}, [{area}, #24]\n",
            "ldr {work:w}, [{fast_path}, #{field}]\n",
            "cmp {index:w}, {work:w}\n",
            "b.hs ",
            $exit,
            "\n",
            "add {index:w}, {index:w}, #1\n",
        )
    };
    (table, $exit:literal) => {
        concat!(
            "ldrsw {index}, [{area}, #4]\n",
            "ldr {work}, [{fast_path}, #{field}]\n",
            "ldr {index:w}, [{work}, {index}, lsl #2]\n",
            "cbz {index:w}, ",
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
                @ $source, "{restart}", [$($line,)*], "b {restart}", "",
                restart = label { break 'section false }, $($operands)*
            );
            true
        }
    };
    // The exit is near: conditional branches reach a megabyte, which the text of one object may
    // exceed, and some assemblers do not report that.
    (or zero $zero:literal, $source:ident, [$($line:expr,)*], $($operands:tt)*) => {
        section!(
            @ $source, "6f", [$($line,)*], "b 6f",
            concat!("b 5f\n", "6:\n", "mov ", $zero, ", #0\n", "5:"),
            $($operands)*
        )
    };
    (@ $source:ident, $exit:literal, [$($line:expr,)*], $pad:literal, $behind:expr, $($operands:tt)*) => {
        std::arch::asm!(
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
            $($line,)*
            "3:",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".inst 0xd428bc00", // the signature: brk #0x45e0
            "4:",
            $pad,
            ".popsection",
            $behind,
            area = in(reg) $crate::sys::thread::at($crate::critical::fast_path::FAST_PATH.area()),
            fast_path = in(reg) &raw const $crate::critical::fast_path::FAST_PATH,
            field = const field!($source),
            shift = const $crate::arena::SHIFT,
            out("x16") _,
            out("x17") _,
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
                "ldr {work}, [{index}]",
                "add {work}, {work}, {n}",
                "str {work}, [{index}]",
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
                "ldr {sum:d}, [{index}]",
                "fadd {sum:d}, {sum:d}, {n:d}",
                "str {sum:d}, [{index}]",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            n = in(vreg) $n,
            sum = out(vreg) _,
            index = out(reg) _,
            work = out(reg) _,
        )
    }};
}

/// The barrier: a reader on another CPU must see the journal that made a word meaningless before it
/// sees what is written to that word. The release: the reader must see what was written before a
/// journal before it sees that journal.
macro_rules! tally {
    ($source:ident, $displacement:expr, $word:expr, $place:expr, $times:expr, $sum:expr) => {{
        section!(
            or false, $source,
            [
                "ldar {work}, [{index}]",
                "cmp {work}, #{ready}",
                "b.ne {restart}",
                "add {index}, {index}, #{journal}",
                "ldr {work}, [{index}]",
                "dmb ishst",
                "add {counts}, {index}, #{counts_field}",
                "ldr {now}, [{counts}, {place}]",
                "and {last}, {work}, #{places}",
                "lsr {count}, {work}, #{count_shift}",
                "cmp {last}, {place}",
                "csel {now}, {count}, {now}, eq",
                "str {count}, [{counts}, {last}]",
                "and {work}, {work}, #1",
                "add {last}, {index}, #{sums}",
                "ldr {total:d}, [{last}, {work}, lsl #3]",
                "fadd {total:d}, {total:d}, {sum:d}",
                "eor {work}, {work}, #1",
                "str {total:d}, [{last}, {work}, lsl #3]",
                "add {now}, {now}, {times}",
                "orr {work}, {work}, {place}",
                "orr {work}, {work}, {now}, lsl #{count_shift}",
                "stlr {work}, [{index}]",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            place = in(reg) $place,
            times = in(reg) $times,
            sum = in(vreg) $sum,
            ready = const $crate::critical::words::READY,
            journal = const $crate::critical::tally::JOURNAL,
            sums = const $crate::critical::tally::SUMS - $crate::critical::tally::JOURNAL,
            counts_field = const $crate::critical::tally::COUNTS - $crate::critical::tally::JOURNAL,
            places = const $crate::critical::tally::PLACES,
            count_shift = const $crate::critical::tally::COUNT_SHIFT,
            total = out(vreg) _,
            counts = out(reg) _,
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
                "add {work}, {index}, #{closed}",
                "ldar {work}, [{work}]",
                "cbnz {work}, 6f",
                "ldar {work}, [{index}]",
                "cmp {work}, {expected}",
                "b.ne 6f",
                "str {token}, [{index}]",
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
                "ldr {work}, [{index}]",
                "sub {items}, {work}, #1",
                "cmp {items}, {capacity}",
                "b.hs {restart}",
                "str {item}, [{index}, {work}, lsl #3]",
                "add {work}, {work}, #1",
                "str {work}, [{index}]",
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            capacity = in(reg) *$capacity,
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
            or zero "{work}", $source,
            [
                "ldr {work}, [{index}]",
                "subs {work}, {work}, #1",
                "b.le 6f",
                "ldr {item}, [{index}, {work}, lsl #3]",
                "str {work}, [{index}]",
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
                "ldr {work}, [{index}, #{head}]",
                "ldr {value}, [{index}, #{tail}]",
                "sub {value}, {work}, {value}",
                "ldr {place}, [{request}, #{needed}]",
                "add {value}, {value}, {place}",
                "ldr {place}, [{request}, #{capacity}]",
                "cmp {value}, {place}",
                "b.hi {restart}",
                // The same thread may have moved the tail shortly before, in code that this
                // operation interrupts. Another CPU must see the tail before anything that is
                // written into the freed part.
                "dmb ishst",
                "ldr {mask}, [{request}, #{mask_field}]",
                "add {data}, {index}, #{data_field}",
                "and {place}, {work}, {mask}",
                "ldr {number}, [{data}, {place}]",
                "and {number}, {number}, #{numbers}",
                "ldr {value}, [{request}, #{length}]",
                "orr {value}, {number}, {value}",
                "str {value}, [{data}, {place}]",
                "ldr {source}, [{request}, #{bytes}]",
                "ldr {end}, [{request}, #{end_field}]",
                "7:",
                "add {work}, {work}, #8",
                "and {place}, {work}, {mask}",
                "cmp {source}, {end}",
                "b.eq 8f",
                "ldr {value}, [{source}], #8",
                "str {value}, [{data}, {place}]",
                "b 7b",
                "8:",
                "ldr {value}, [{request}, #{rest}]",
                "str {value}, [{data}, {place}]",
                "ldr {work}, [{index}, #{head}]",
                "ldr {value}, [{request}, #{size}]",
                "add {work}, {work}, {value}",
                "and {place}, {work}, {mask}",
                "add {number}, {number}, #{one_shifted}, lsl #12",
                "str {number}, [{data}, {place}]",
                "stlr {work}, [{index}]", // the head is the first word
            ],
            object = in(reg) $word.wrapping_add_signed($displacement),
            request = in(reg) $request,
            head = const $crate::critical::ring::HEAD,
            tail = const $crate::critical::ring::TAIL,
            data_field = const $crate::critical::ring::DATA,
            one_shifted = const $crate::critical::ring::ONE >> 12,
            numbers = const $crate::critical::ring::NUMBERS,
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
                "add {data}, {index}, #{data_field}",
                "ldr {work}, [{index}, #{tail}]",
                "ldr {target}, [{index}, #{head}]",
                "sub {target}, {target}, {keep}",
                "7:",
                "cmp {target}, {work}",
                "b.le 8f",
                "and {size}, {work}, {mask}",
                "ldrh {size:w}, [{data}, {size}]",
                "add {size}, {size}, #15",
                "and {size}, {size}, #-8",
                "add {work}, {work}, {size}",
                "b 7b",
                "8:",
                "str {work}, [{index}, #{tail}]",
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
