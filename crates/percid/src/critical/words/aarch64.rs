//! The sections of words in the assembly of 64-bit Arm. `index` is the address of the shard, `work`
//! that of the field.

/// One section: it leaves unless the shard is ready. The operation may end without a commit by a
/// branch to the label 5.
macro_rules! word_section_of {
    (
        $source:ident, $displacement:expr, $word:expr, $at:expr,
        [$($line:expr,)*], $($operands:tt)*
    ) => {{
        let shard: usize;
        section!(
            or zero "{index}", $source,
            [
                "ldar {work}, [{index}]",
                "cmp {work}, #{ready}",
                "b.ne 6f",
                "add {work}, {index}, {at}",
                $($line,)*
            ],
            ready = const $crate::critical::words::READY,
            object = in(reg) $word.wrapping_add_signed($displacement),
            at = in(reg) $at,
            index = out(reg) shard,
            work = out(reg) _,
            $($operands)*
        );
        shard
    }};
}

macro_rules! add_word {
    ($source:ident, $displacement:expr, $word:expr, $at:expr, $n:expr) => {{
        let sum: u64;
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {sum}, [{work}]",
                "add {sum}, {sum}, {n}",
                "str {sum}, [{work}]",
            ],
            n = in(reg) $n,
            sum = out(reg) sum,
        );
        Outcome { shard, seen: sum, other: 0 }
    }};
}

macro_rules! swap {
    ($source:ident, $displacement:expr, $word:expr, $at:expr, $new:expr) => {{
        let seen: u64;
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {seen}, [{work}]",
                "stlr {desired}, [{work}]",
            ],
            desired = in(reg) $new,
            seen = out(reg) seen,
        );
        Outcome { shard, seen, other: 0 }
    }};
}

macro_rules! store_if {
    ($source:ident, $displacement:expr, $word:expr, $at:expr, $expected:expr, $new:expr) => {{
        let seen: u64;
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {seen}, [{work}]",
                "cmp {seen}, {expected}",
                "b.ne 5f",
                "stlr {desired}, [{work}]",
            ],
            expected = in(reg) $expected,
            desired = in(reg) $new,
            seen = out(reg) seen,
        );
        Outcome { shard, seen, other: 0 }
    }};
}

macro_rules! store_both_if {
    (
        $source:ident, $displacement:expr, $word:expr, $at:expr,
        $expected:expr, $first:expr, $new:expr
    ) => {{
        let seen: u64;
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {seen}, [{work}]",
                "cmp {seen}, {expected}",
                "b.ne 5f",
                "str {value}, [{index}, {first}]",
                "stlr {desired}, [{work}]",
            ],
            expected = in(reg) $expected,
            first = in(reg) $first.0,
            value = in(reg) $first.1,
            desired = in(reg) $new,
            seen = out(reg) seen,
        );
        Outcome { shard, seen, other: 0 }
    }};
}

macro_rules! store_if_both {
    (
        $source:ident, $displacement:expr, $word:expr, $at:expr,
        $expected:expr, $second:expr, $new:expr
    ) => {{
        let (seen, other): (u64, u64);
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {seen}, [{work}]",
                "ldr {other}, [{index}, {second}]",
                "cmp {seen}, {expected}",
                "b.ne 5f",
                "cmp {other}, {value}",
                "b.ne 5f",
                "stlr {desired}, [{work}]",
            ],
            expected = in(reg) $expected,
            second = in(reg) $second.0,
            value = in(reg) $second.1,
            desired = in(reg) $new,
            seen = out(reg) seen,
            other = out(reg) other,
        );
        Outcome { shard, seen, other }
    }};
}

macro_rules! copy_then_store_if {
    ($source:ident, $displacement:expr, $word:expr, $at:expr, $request:expr) => {{
        let seen: u64;
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {seen}, [{work}]",
                "ldr {value}, [{request}, #{expected}]",
                "cmp {seen}, {value}",
                "b.ne 5f",
                "ldr {end}, [{request}, #{end_field}]",
                "ldr {to}, [{request}, #{to_field}]",
                "add {to}, {to}, {index}",
                "ldr {position}, [{request}, #{start}]",
                "ldr {limit}, [{request}, #{words_end}]",
                "7:",
                "cmp {position}, {limit}",
                "b.eq 8f",
                "ldr {value}, [{end}, {position}]",
                "str {value}, [{to}, {position}]",
                "add {position}, {position}, #8",
                "b 7b",
                "8:",
                "cbz {position}, 7f",
                "ldrb {value:w}, [{end}, {position}]",
                "strb {value:w}, [{to}, {position}]",
                "add {position}, {position}, #1",
                "b 8b",
                "7:",
                "ldr {value}, [{request}, #{desired}]",
                "stlr {value}, [{work}]",
            ],
            request = in(reg) $request,
            expected = const std::mem::offset_of!(CopyRequest, expected),
            end_field = const std::mem::offset_of!(CopyRequest, from_end),
            to_field = const std::mem::offset_of!(CopyRequest, to),
            start = const std::mem::offset_of!(CopyRequest, start),
            words_end = const std::mem::offset_of!(CopyRequest, words_end),
            desired = const std::mem::offset_of!(CopyRequest, new),
            end = out(reg) _,
            to = out(reg) _,
            position = out(reg) _,
            limit = out(reg) _,
            value = out(reg) _,
            seen = out(reg) seen,
        );
        Outcome { shard, seen, other: 0 }
    }};
}

macro_rules! push_link {
    ($source:ident, $displacement:expr, $word:expr, $at:expr, $item:expr, $link:expr) => {{
        let seen: u64;
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {seen}, [{work}]",
                "str {seen}, [{link}]",
                "stlr {item}, [{work}]",
            ],
            item = in(reg) $item,
            link = in(reg) $link,
            seen = out(reg) seen,
        );
        Outcome { shard, seen, other: 0 }
    }};
}

macro_rules! pop_link {
    ($source:ident, $displacement:expr, $word:expr, $at:expr, $next:expr) => {{
        let (seen, other): (u64, u64);
        let shard = word_section_of!(
            $source, $displacement, $word, $at,
            [
                "ldr {seen}, [{work}]",
                "cbz {seen}, 5f",
                "ldr {other}, [{seen}, {next}]",
                "stlr {other}, [{work}]",
            ],
            next = in(reg) $next,
            seen = out(reg) seen,
            other = out(reg) other,
        );
        Outcome { shard, seen, other }
    }};
}
