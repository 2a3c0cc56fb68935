//! Waiting.

use std::time::{Duration, Instant};

/// Sleeps for so many nanoseconds, and returns how often that time has gone by: some systems sleep
/// for milliseconds at least.
pub(crate) fn sleep(nanoseconds: i64) -> u32 {
    // Miri lets nobody else run meanwhile.
    if cfg!(miri) {
        std::thread::yield_now();
        return 1;
    }
    let (time, before) = (Duration::from_nanos(nanoseconds.unsigned_abs()), Instant::now());
    std::thread::sleep(time);
    // Linux takes about twice as long as it is told, and counts once.
    (before.elapsed().as_nanos() / (2 * time.as_nanos())).clamp(1, 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sleep_counts_often() {
        let before = Instant::now();
        let rounds: u32 = (0..10).map(|_| sleep(1_000_000)).sum();
        let elapsed = before.elapsed().as_millis() as u32;
        assert!((10..=10 + elapsed / 2).contains(&rounds), "{rounds} in {elapsed} ms");
        assert!(elapsed >= 10 || cfg!(miri));
    }
}
