//! Files of tracing that are not read, and how to make one of them that is.

/// A sub-buffer of tracefs: its time, the bytes in use, and the records.
const PAGE: usize = 4096;
const HEADER: usize = 16;
const IN_USE: u64 = (1 << 27) - 1;

/// Returns the name of a known format that cannot be read, and how to convert it.
pub(super) fn told(bytes: &[u8]) -> Option<&'static str> {
    match () {
        () if bytes.starts_with(b"PERFFILE") || bytes.starts_with(b"ELIFFREP") => Some(
            "this is perf.data in version 1, of perf up to Linux 3.5: expected was version 2, which `perf inject -i OLD -o \
             NEW` of a later perf writes, or the text of `perf script -i OLD`",
        ),
        () if are_pages(bytes) => Some(
            "these are raw pages of tracefs (per_cpu/cpuN/trace_pipe_raw), which do not say which event is which: \
             expected was trace.dat (trace-cmd record, or trace-cmd extract from the same machine), or the text of \
             the file trace",
        ),
        () => None,
    }
}

/// Returns `true` if these are whole pages with ascending times, each with at least one byte in use
/// and no more than its size.
fn are_pages(bytes: &[u8]) -> bool {
    let pages = bytes.chunks_exact(PAGE);
    if bytes.is_empty() || !pages.remainder().is_empty() {
        return false;
    }
    let word = |page: &[u8], at: usize| -> [u8; 8] {
        page.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
    };
    let fits = |number: fn([u8; 8]) -> u64| {
        let mut last = 0;
        bytes.chunks_exact(PAGE).all(|page| {
            let (time, in_use) = (number(word(page, 0)), number(word(page, 8)) & IN_USE);
            let ascends = time >= last;
            last = time;
            ascends && time > 0 && (1..=(PAGE - HEADER) as u64).contains(&in_use)
        })
    };
    fits(u64::from_le_bytes) || fits(u64::from_be_bytes)
}
