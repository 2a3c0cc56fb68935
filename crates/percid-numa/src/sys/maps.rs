//! The mappings of this process, from `/proc/self/maps`. Allocates: not async-signal-safe.

use std::ops::Range;

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<usize>,
    /// The rights to read, write and execute.
    pub(crate) rights: [bool; 3],
    /// `true` if a file backs the mapping.
    pub(crate) file: bool,
    /// `true` if the pages can never be moved: the kernel's own, or huge pages of their own file
    /// system.
    pub(crate) fixed: bool,
    /// `true` if the mapping is the stack of the first thread.
    pub(crate) stack: bool,
}

/// Returns all mappings by ascending address; `None` without `/proc`.
pub(crate) fn all() -> Option<Vec<Mapping>> {
    let text = std::fs::read("/proc/self/maps").ok()?;
    Some(text.split(|&byte| byte == b'\n').filter_map(parse).collect())
}

/// Returns the mappings that overlap a range.
pub(crate) fn overlapping<'m>(mappings: &'m [Mapping], range: &Range<usize>) -> &'m [Mapping] {
    let first = mappings.partition_point(|mapping| mapping.range.end <= range.start);
    let count = mappings[first..].partition_point(|mapping| mapping.range.start < range.end);
    &mappings[first..first + count]
}

/// Returns the first address of a range that is in one of the parts.
pub(crate) fn first_in(
    range: &Range<usize>,
    parts: impl IntoIterator<Item = Range<usize>>,
) -> Option<usize> {
    let overlap = |part: Range<usize>| {
        let place = part.start.max(range.start);
        (place < part.end.min(range.end)).then_some(place)
    };
    parts.into_iter().filter_map(overlap).min()
}

/// Parses a line `start-end rwxp offset device inode name`, in which the name may contain spaces.
fn parse(line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?.as_bytes();
    let name = fields.nth(3).unwrap_or("");
    let start = usize::from_str_radix(start, 16).ok()?;
    let special = ["[vvar", "[vdso", "[vsyscall", "/anon_hugepage", "/dev/hugepages/"];
    Some(Mapping {
        range: start..usize::from_str_radix(end, 16).ok()?,
        rights: [
            rights.first() == Some(&b'r'),
            rights.get(1) == Some(&b'w'),
            rights.get(2) == Some(&b'x'),
        ],
        file: name.starts_with('/'),
        fixed: special.iter().any(|prefix| name.starts_with(prefix)),
        stack: name == "[stack]",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let of = |line: &str| parse(line.as_bytes());
        let file = of("7f00-8000 r-xp 00001000 08:01 42    /usr/lib/a b.so").expect("a mapping");
        assert_eq!((file.range, file.rights), (0x7f00..0x8000, [true, false, true]));
        assert!(file.file && !file.fixed);
        let own = of("1000-2000 rw-p 00000000 00:00 0 ").expect("a mapping");
        assert!(!own.file && !own.fixed && own.rights == [true, true, false]);
        assert!(
            of("ffff-fffff rw-p 00000000 00:00 0 [stack]").expect("a mapping").stack && !own.stack
        );
        assert!(of("ffff-fffff r--p 00000000 00:00 0 [vvar]").expect("a mapping").fixed);
        assert_eq!(of(""), None);
    }

    #[test]
    fn the_first_address_in_some_parts() {
        let first = |range, parts: &[Range<usize>]| first_in(&range, parts.iter().cloned());
        assert_eq!(first(10..20, &[30..40, 15..35, 20..21, 0..10]), Some(15));
        assert_eq!(first(10..20, &[18..19, 0..11]), Some(10));
        assert_eq!(
            (first(10..20, &[12..12, 20..30, 0..10]), first(5..5, &[0..10, 20..30])),
            (None, None)
        );
    }

    #[test]
    fn this_stack_is_mapped() {
        let here = 0u8;
        let address = &raw const here as usize;
        let mappings = all().expect("/proc");
        let found = overlapping(&mappings, &(address..address + 1));
        assert!(matches!(found, [Mapping { rights: [true, true, _], file: false, .. }]));
    }
}
