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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn it_counts_milliseconds_of_the_monotonic_clock() {
        let exact = || {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is a valid place for the result.
            unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
            std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_millis() as u64
        };
        // It goes by ticks, so it may be late by some, and never early.
        let before = exact();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let now = now_ms();
        assert!(before.saturating_sub(1000) <= now && now <= exact(), "{before} {now}");
        assert!((0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            now_ms() > now
        }));
    }
}
