//! Short texts of the kernel, of the environment and of command lines: lists of CPUs, the names of
//! sources, releases; and texts that C programs give memory for.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::{Corpus, fuzz_target};
use percid::Source;
use percid_rules::Generation;
use percid_sim::cpu_list;

mod sys;
/// The C interface's own file: it is private there.
#[path = "../../crates/percid-capi/src/text.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod text;

/// Maximum length of a list; kernels write longer ones, with nothing else in them.
const LONGEST: usize = 256;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    check_c_text(bytes);
    // Lists of the same CPUs again and again show nothing.
    if bytes.len() > LONGEST {
        return Corpus::Reject;
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Keep };
    let source: Result<Source, _> = text.parse();
    let known = ["kernel", "table", "atomic"].contains(&text);
    assert_eq!(source.as_ref().map(Source::to_string).ok(), known.then(|| text.to_owned()));
    check_release(text);
    check_cpu_set(text);
    check_cpu_list(text);
    Corpus::Keep
});

/// Checks that the beginning of the text and a zero are written, and nothing beyond the given
/// space.
fn check_c_text(bytes: &[u8]) {
    let Some((&size, text)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let mut memory = vec![0x55; usize::from(size) + 1];
    let start = memory.as_mut_ptr().cast();
    // SAFETY: the memory is one byte larger than `size`.
    let length = unsafe { text::write(start, size.into(), &text) };
    assert_eq!(length, text.len());
    assert_eq!(memory[usize::from(size)], 0x55);
    if size > 0 {
        let kept = text.len().min(usize::from(size) - 1);
        assert_eq!((&memory[..kept], memory[kept]), (&text.as_bytes()[..kept], 0));
    }
}

fn check_release(text: &str) {
    let Some(generation) = Generation::hinted_by(text) else { return };
    let (major, rest) = text.split_once(|c: char| !c.is_ascii_digit()).expect("two numbers");
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next().expect("a part");
    let [major, minor] = [major, minor].map(|number| number.parse::<u64>().expect("a number"));
    assert_eq!(generation == Generation::Owned, (major, minor) >= (6, 19), "{text}");
    assert!((major, minor) >= (6, 3), "{text}");
}

/// Checks the library's reader: a list is the set of its members; empty parts are ignored.
fn check_cpu_set(text: &str) {
    let expected = naive(text, true, sys::MAX_CPUS);
    let set = sys::cpuset::CpuSet::parse(text);
    let found = set.as_ref().map(|set| (0..sys::MAX_CPUS).map(|cpu| set.contains(cpu as u32)));
    assert_eq!(found.map(Vec::from_iter), expected, "{text:?}");
    let (Some(set), Some(members)) = (set, expected) else { return };
    assert_eq!(set.len(), members.iter().filter(|member| **member).count());
    assert_eq!(set.last(), members.iter().rposition(|member| *member).map(|cpu| cpu as u32));
    assert_eq!(sys::cpuset::CpuSet::parse(&set.to_string()), Some(set));
}

/// Checks the reader of traces: ranges, in their order; empty parts are refused.
fn check_cpu_list(text: &str) {
    const END: usize = 1 << 17;
    let expected = naive(text, false, END);
    let found = cpu_list::parse(text).map(|ranges| {
        let mut members = vec![false; END];
        ranges.into_iter().flatten().for_each(|cpu| members[cpu as usize] = true);
        members
    });
    assert!(found == expected, "{text:?}");
}

/// Returns which numbers below `end` are members of a list, letter by letter; `None` if the text is
/// not a list. The two readers differ in the texts that they accept.
fn naive(text: &str, lenient: bool, end: usize) -> Option<Vec<bool>> {
    let mut members = vec![false; end];
    let text = text.trim();
    if text.is_empty() {
        return Some(members);
    }
    for part in text.split(',') {
        if part.is_empty() && lenient {
            continue;
        }
        let mut numbers =
            part.splitn(2, '-').map(|number| if lenient { number } else { number.trim() });
        let first = naive_number(numbers.next()?)?;
        let last = numbers.next().map_or(Some(first), naive_number)?;
        if first > last || last >= end as u64 {
            return None;
        }
        members[first as usize..=last as usize].fill(true);
    }
    Some(members)
}

/// Reads digits; Rust's numbers may have a plus before them.
fn naive_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    let sum = digits.bytes().try_fold(0u64, |sum, byte| match byte {
        b'0'..=b'9' if sum <= u64::from(u32::MAX) => {
            ControlFlow::Continue(sum * 10 + u64::from(byte - b'0'))
        }
        _ => ControlFlow::Break(()),
    });
    sum.continue_value().filter(|&sum| sum <= u64::from(u32::MAX))
}
