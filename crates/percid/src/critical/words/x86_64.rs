//! The sections of words in the assembly of x86-64. `index` is the address of the shard plus the
//! mark, `work` that of the field.

/// One section: it leaves unless the shard is ready. The operation may end without a commit by a
/// jump to the label 5.
macro_rules! word_section_of {
    (
        $source:ident, $displacement:expr, $word:expr, $at:expr,
        [$($line:expr,)*], $($operands:tt)*
    ) => {{
        let shard: usize;
        section!(
            or zero "{index:e}", $source,
            [
                "cmp qword ptr [{index} + {displacement}], {ready}",
                "jne 6f",
                "lea {work}, [{index} + {at}]",
                $($line,)*
            ],
            displacement = const $displacement,
            ready = const $crate::critical::words::READY,
            object = in(reg) $word,
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
                "mov {sum}, qword ptr [{work} + {displacement}]",
                "add {sum}, {n}",
                "mov qword ptr [{work} + {displacement}], {sum}",
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
                "mov {seen}, qword ptr [{work} + {displacement}]",
                "mov qword ptr [{work} + {displacement}], {desired}",
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
                "mov {seen}, qword ptr [{work} + {displacement}]",
                "cmp {seen}, {expected}",
                "jne 5f",
                "mov qword ptr [{work} + {displacement}], {desired}",
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
                "mov {seen}, qword ptr [{work} + {displacement}]",
                "cmp {seen}, {expected}",
                "jne 5f",
                "mov qword ptr [{index} + {first} + {displacement}], {value}",
                "mov qword ptr [{work} + {displacement}], {desired}",
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
                "mov {seen}, qword ptr [{work} + {displacement}]",
                "mov {other}, qword ptr [{index} + {second} + {displacement}]",
                "cmp {seen}, {expected}",
                "jne 5f",
                "cmp {other}, {value}",
                "jne 5f",
                "mov qword ptr [{work} + {displacement}], {desired}",
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
                "mov {seen}, qword ptr [{work} + {displacement}]",
                "cmp {seen}, qword ptr [{request} + {expected}]",
                "jne 5f",
                "mov {end}, qword ptr [{request} + {end_field}]",
                "mov {to}, qword ptr [{request} + {to_field}]",
                "add {to}, {index}",
                "mov {position}, qword ptr [{request} + {start}]",
                "7:",
                "cmp {position}, qword ptr [{request} + {words_end}]",
                "je 8f",
                "mov {value}, qword ptr [{end} + {position}]",
                "mov qword ptr [{to} + {position} + {displacement}], {value}",
                "add {position}, 8",
                "jmp 7b",
                "8:",
                "test {position}, {position}",
                "je 7f",
                "movzx {value:e}, byte ptr [{end} + {position}]",
                "mov byte ptr [{to} + {position} + {displacement}], {value:l}",
                "inc {position}",
                "jmp 8b",
                "7:",
                "mov {value}, qword ptr [{request} + {desired}]",
                "mov qword ptr [{work} + {displacement}], {value}",
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
                "mov {seen}, qword ptr [{work} + {displacement}]",
                "mov qword ptr [{link}], {seen}",
                "mov qword ptr [{work} + {displacement}], {item}",
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
                "mov {seen}, qword ptr [{work} + {displacement}]",
                "test {seen}, {seen}",
                "jz 5f",
                "mov {other}, qword ptr [{seen} + {next}]",
                "mov qword ptr [{work} + {displacement}], {other}",
            ],
            next = in(reg) $next,
            seen = out(reg) seen,
            other = out(reg) other,
        );
        Outcome { shard, seen, other }
    }};
}
