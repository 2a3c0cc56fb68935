//! The pages of the machine.

/// Returns the size of a page in bytes. Async-signal-safe.
pub(crate) fn size() -> usize {
    // SAFETY: the call takes a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // Without a page size, no range consists of whole pages.
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns `true` if a range consists of whole pages of this size. Kernels include the rest of a
/// page at the end of a range, which may belong to another owner: blocks are aligned to 4 KiB, and
/// pages have up to 64 KiB.
pub(crate) fn are_whole(start: usize, bytes: usize, page: usize) -> bool {
    start.is_multiple_of(page) && bytes.is_multiple_of(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_pages_are_not_whole() {
        const KIB: usize = 1024;
        assert!(are_whole(0x7f00_0000, 4 * KIB, 4 * KIB) && are_whole(0, 128 * KIB, 64 * KIB));
        assert!(!are_whole(0x7f00_0000, 4 * KIB, 16 * KIB), "its end is another's");
        assert!(!are_whole(0x7f00_1000, 16 * KIB, 16 * KIB) && !are_whole(64, 64, usize::MAX));
    }

    #[test]
    fn this_machine_has_pages() {
        assert!(size().is_power_of_two() && (4096..=65536).contains(&size()));
    }
}
