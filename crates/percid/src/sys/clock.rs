//! A coarse monotonic clock for the slow paths.

/// Milliseconds since an arbitrary start, at the resolution of the scheduler tick (1 to 10 ms).
///
/// Cost: one vDSO call, no system call.
pub(crate) fn now_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
