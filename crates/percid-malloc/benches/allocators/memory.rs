//! Resident memory of this process, in KiB.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The resident set while threads waited, in KiB; 0: none did.
static IDLE: AtomicU64 = AtomicU64::new(0);

/// Takes down the resident set now.
pub(crate) fn note_idle() {
    IDLE.store(of("VmRSS:"), Relaxed);
}

/// Returns a line of the kernel's about this process, in KiB.
fn of(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the largest resident set that there was.
pub(crate) fn peak() -> u64 {
    of("VmHWM:")
}

/// Returns the resident set that was taken down, or that of now.
pub(crate) fn idle() -> u64 {
    match IDLE.load(Relaxed) {
        0 => of("VmRSS:"),
        noted => noted,
    }
}
