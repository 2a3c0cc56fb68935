//! The sections of words in the assembly of 64-bit RISC-V. `index` is the address of the shard,
//! `work` that of the field.

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
                "ld {work}, 0({index})",
                "addi {work}, {work}, -{ready}",
                "bnez {work}, 6f",
                "fence r, rw",
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
                "ld {sum}, 0({work})",
                "add {sum}, {sum}, {n}",
                "sd {sum}, 0({work})",
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
                "ld {seen}, 0({work})",
                "fence rw, w",
                "sd {desired}, 0({work})",
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
                "ld {seen}, 0({work})",
                "bne {seen}, {expected}, 5f",
                "fence rw, w",
                "sd {desired}, 0({work})",
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
                "ld {seen}, 0({work})",
                "bne {seen}, {expected}, 5f",
                "add {place}, {index}, {first}",
                "sd {value}, 0({place})",
                "fence rw, w",
                "sd {desired}, 0({work})",
            ],
            expected = in(reg) $expected,
            first = in(reg) $first.0,
            value = in(reg) $first.1,
            desired = in(reg) $new,
            seen = out(reg) seen,
            place = out(reg) _,
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
                "ld {seen}, 0({work})",
                "add {other}, {index}, {second}",
                "ld {other}, 0({other})",
                "bne {seen}, {expected}, 5f",
                "bne {other}, {value}, 5f",
                "fence rw, w",
                "sd {desired}, 0({work})",
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
                "ld {seen}, 0({work})",
                "ld {value}, {expected}({request})",
                "bne {seen}, {value}, 5f",
                "ld {end}, {end_field}({request})",
                "ld {to}, {to_field}({request})",
                "add {to}, {to}, {index}",
                "ld {position}, {start}({request})",
                "ld {limit}, {words_end}({request})",
                "7:",
                "beq {position}, {limit}, 8f",
                "add {value}, {end}, {position}",
                "ld {value}, 0({value})",
                "add {place}, {to}, {position}",
                "sd {value}, 0({place})",
                "addi {position}, {position}, 8",
                "j 7b",
                "8:",
                "beqz {position}, 7f",
                "add {value}, {end}, {position}",
                "lbu {value}, 0({value})",
                "add {place}, {to}, {position}",
                "sb {value}, 0({place})",
                "addi {position}, {position}, 1",
                "j 8b",
                "7:",
                "ld {value}, {desired}({request})",
                "fence rw, w",
                "sd {value}, 0({work})",
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
            place = out(reg) _,
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
                "ld {seen}, 0({work})",
                "sd {seen}, 0({link})",
                "fence rw, w",
                "sd {item}, 0({work})",
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
                "ld {seen}, 0({work})",
                "beqz {seen}, 5f",
                "add {other}, {seen}, {next}",
                "ld {other}, 0({other})",
                "fence rw, w",
                "sd {other}, 0({work})",
            ],
            next = in(reg) $next,
            seen = out(reg) seen,
            other = out(reg) other,
        );
        Outcome { shard, seen, other }
    }};
}
