//! Lists of CPUs in the kernel's format: `0-3,8`.

use std::ops::RangeInclusive;

use crate::topology::Cpu;

/// Exclusive upper bound of CPU numbers, beyond any Linux configuration.
pub const MAX_CPUS: Cpu = 1 << 17;

/// Returns the ranges of a list, or `None` if the text is not a list. An empty text is an empty
/// list.
pub fn parse(text: &str) -> Option<Vec<RangeInclusive<Cpu>>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(range).collect()
}

/// Returns the number of CPUs in a list, or `None` if the text is not a list or is empty.
pub fn count(list: &str) -> Option<u32> {
    parse(list)?
        .into_iter()
        .map(|range| range.end() - range.start() + 1)
        .reduce(u32::saturating_add)
}

fn range(text: &str) -> Option<RangeInclusive<Cpu>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < MAX_CPUS).then_some(first..=last)
}

/// Returns the list of these CPUs, which must be in ascending order.
pub fn write(cpus: impl IntoIterator<Item = Cpu>) -> String {
    let mut ranges: Vec<(Cpu, Cpu)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |(first, last): (Cpu, Cpu)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
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

    #[test]
    fn what_is_written_is_what_is_read() {
        for list in ["", "7", "0-3,8", "0,2,4-5"] {
            let cpus = parse(list).expect("a list").into_iter().flatten();
            assert_eq!(write(cpus), list);
        }
    }
}
