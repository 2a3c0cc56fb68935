//! How much work fits into a time, by what earlier work took.

use std::time::Duration;

/// How much faster than before the next piece of work may be assumed to be: a short piece is mostly
/// preparation, and says little about a long one.
const GROWTH: f64 = 8.0;

/// The speed of a kind of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Throughput {
    bytes_per_second: f64,
}

impl Throughput {
    /// Returns a speed to begin with.
    pub(crate) const fn assumed(bytes_per_second: f64) -> Throughput {
        Throughput { bytes_per_second }
    }

    /// Returns how many bytes take about this time.
    pub(crate) fn fits(&self, time: Duration) -> u64 {
        // The conversion saturates.
        (self.bytes_per_second * time.as_secs_f64()) as u64
    }

    /// Assumes twice the speed, where no measurement contradicts it.
    pub(crate) fn double(&mut self) {
        self.bytes_per_second *= 2.0;
    }

    /// Learns from work of `bytes` that took `took`. No work teaches nothing.
    pub(crate) fn learn(&mut self, bytes: u64, took: Duration) {
        if bytes == 0 {
            return;
        }
        let measured = bytes as f64 / took.as_secs_f64().max(1e-9);
        self.bytes_per_second = measured.min(self.bytes_per_second * GROWTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_slow_is_known_at_once_and_what_is_fast_by_and_by() {
        let mut throughput = Throughput::assumed(1000.0);
        assert_eq!(throughput.fits(SECOND / 10), 100);
        throughput.learn(100, SECOND);
        assert_eq!(throughput.fits(SECOND), 100);
        throughput.learn(100, SECOND / 1000);
        assert_eq!(throughput.fits(SECOND), 800);
        throughput.learn(800, SECOND / 1000);
        assert_eq!(throughput.fits(SECOND), 6400);
    }

    #[test]
    fn nothing_done_changes_nothing_and_no_time_is_no_division_by_zero() {
        let mut throughput = Throughput::assumed(1000.0);
        throughput.learn(0, SECOND);
        assert_eq!(throughput, Throughput::assumed(1000.0));
        throughput.learn(5, Duration::ZERO);
        assert_eq!(throughput.fits(SECOND), 8000);
    }
}
