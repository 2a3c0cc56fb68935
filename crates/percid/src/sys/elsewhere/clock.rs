//! Sleeping.

use std::time::{Duration, Instant};

/// Sleeps for `nanoseconds`, and returns how many times that time has passed: some systems sleep
/// for at least milliseconds.
pub(crate) fn sleep(nanoseconds: i64) -> u32 {
    // Miri runs no other thread during a sleep.
    if cfg!(miri) {
        std::thread::yield_now();
        return 1;
    }
    let (time, before) = (Duration::from_nanos(nanoseconds.unsigned_abs()), Instant::now());
    std::thread::sleep(time);
    // Linux sleeps about twice as long as requested, and that counts as once.
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
