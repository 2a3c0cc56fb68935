//! Waiting.

use std::time::Duration;

/// Sleeps for so many nanoseconds.
pub(crate) fn sleep(nanoseconds: i64) {
    // Time stands still in Miri while a thread is busy.
    if cfg!(miri) {
        return std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_nanos(nanoseconds.unsigned_abs()));
}
