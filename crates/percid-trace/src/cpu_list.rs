//! Lists of CPUs as the kernel writes them: `0-3,8`.

use std::ops::RangeInclusive;

use crate::event::Cpu;

/// More CPUs than Linux can be built for.
pub(crate) const MOST: Cpu = 1 << 17;

/// How many CPUs a list has; `None` if it is none, or empty.
pub(crate) fn count(list: &str) -> Option<u32> {
    parse(list)?
        .into_iter()
        .map(|range| range.end() - range.start() + 1)
        .reduce(u32::saturating_add)
}

/// The ranges of a list, or `None` if it is no such list. An empty text is an empty list.
pub fn parse(text: &str) -> Option<Vec<RangeInclusive<Cpu>>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(range).collect()
}

fn range(text: &str) -> Option<RangeInclusive<Cpu>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < MOST).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_cpus_are_read_and_nothing_else() {
        assert_eq!(parse("0-3,8\n"), Some(vec![0..=3, 8..=8]));
        assert_eq!(parse(""), Some(Vec::new()));
        for wrong in ["3-0", "a", "1,,2", "-1", "0-", "1-2-3", "0-4294967295", "99999999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
