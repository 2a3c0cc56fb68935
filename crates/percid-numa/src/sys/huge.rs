//! Transparent huge pages: detection of memory that has them, or will have them. Allocates: not
//! async-signal-safe.

use std::ops::Range;

const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage/";

/// Returns log2 of the bytes of a huge page; `None` if this machine does not use them.
fn shift() -> Option<u32> {
    let read = |name: &str| std::fs::read_to_string(format!("{SETTINGS}{name}")).ok();
    if read("enabled")?.contains("[never]") {
        return None;
    }
    let bytes: usize = read("hpage_pmd_size")?.trim().parse().ok()?;
    bytes.is_power_of_two().then(|| bytes.trailing_zeros())
}

/// Returns log2 of the bytes of the huge pages that a range has, or will have as soon as it is
/// used; `None` if it has none. The kernel sums up the memory of the whole process for this: a
/// millisecond for some GiB.
pub(crate) fn pages_in(range: &Range<usize>) -> Option<u32> {
    let shift = shift()?;
    let first = range.start.checked_next_multiple_of(1 << shift)?;
    let holds_one = first.checked_add(1 << shift).is_some_and(|end| end <= range.end);
    if !holds_one {
        return None;
    }
    let text = std::fs::read("/proc/self/smaps").ok()?;
    any_huge(&String::from_utf8_lossy(&text), range).then_some(shift)
}

/// Returns `true` if one of the mappings that overlap the range has huge pages, or is untouched and
/// eligible for them.
fn any_huge(smaps: &str, range: &Range<usize>) -> bool {
    let (mut inside, mut resident) = (false, 0);
    for line in smaps.lines() {
        if let Some(mapping) = mapping(line) {
            inside = mapping.start < range.end && mapping.end > range.start;
            resident = 0;
            continue;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| inside) else { continue };
        let number = value.split_ascii_whitespace().next().and_then(|digits| digits.parse().ok());
        match (name, number.unwrap_or(0u64)) {
            ("Rss", kib) => resident = kib,
            ("AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped", 1..) => return true,
            ("THPeligible", 1) if resident == 0 => return true,
            _ => {}
        }
    }
    false
}

/// Returns the addresses in the first line of a mapping.
fn mapping(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smaps(resident: u64, huge: u64, eligible: u64) -> String {
        format!(
            "1000-2000 rw-p 00000000 00:00 0 [heap]\nRss: 4 kB\nAnonHugePages: 2048 kB\n\
             2000-9000 rw-p 00000000 00:00 0 \nRss: {resident} kB\nAnonHugePages: {huge} kB\n\
             THPeligible: {eligible}\nVmFlags: rd wr\n"
        )
    }

    #[test]
    fn memory_is_huge_if_it_has_huge_pages_or_will_have() {
        let range = 0x3000..0x5000;
        assert!(any_huge(&smaps(4096, 2048, 0), &range));
        assert!(any_huge(&smaps(0, 0, 1), &range));
        assert!(!any_huge(&smaps(4, 0, 1), &range), "its pages are small by now");
        assert!(!any_huge(&smaps(0, 0, 0), &range));
        assert!(!any_huge("nonsense\n-- :\n9-: x\n", &range));
    }

    #[test]
    fn a_range_without_room_for_one_has_none() {
        assert_eq!(pages_in(&(0x1000..0x2000)), None);
        assert_eq!(pages_in(&(usize::MAX - 4096..usize::MAX)), None);
    }
}
