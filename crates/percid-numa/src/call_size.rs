//! Adaptive size of system calls: the bytes that one call can process in a given time, estimated
//! from earlier calls.
//!
//! A call takes a fixed time, and additional time for every page. Both are estimated by a line
//! through the calls so far, with decreasing weights for older ones. If the fixed time is longer
//! than the given time, a call may take a multiple of the fixed time (`WORTH`). Smaller calls
//! would make the total longer, and hardly shorten any single call.

use std::time::Duration;

/// Weight of a call relative to the one after it.
const FADING: f64 = 0.8;
/// Factor by which a call may exceed the largest one before.
const GROWTH: f64 = 4.0;

/// Ratio of a call's permitted time to its fixed time: three quarters of the time are spent on the
/// bytes.
const WORTH: f64 = 4.0;

/// Estimated size of calls of one kind. A data point is the bytes and the seconds of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallSize {
    /// Bytes of the largest call so far; at first, chosen such that the first call has the given
    /// size.
    largest: f64,
    /// Fading sums over the calls: their number, x, y, x squared, x times y.
    sums: [f64; 5],
}

impl CallSize {
    /// Makes an estimate; the first call has `first` bytes.
    pub(crate) const fn new(first: u64) -> CallSize {
        CallSize { largest: first as f64 / GROWTH, sums: [0.0; 5] }
    }

    /// Returns the number of bytes that a call should process to take this time.
    pub(crate) fn bytes(&self, time: Duration) -> u64 {
        let bold = self.largest * GROWTH;
        let (fixed, for_each) = self.line();
        let [count, x, ..] = self.sums;
        if count > 0.0 && (fixed, for_each) == (0.0, 0.0) {
            // All calls had one size: grow from that size, not from larger ones that have faded.
            return (x / count * GROWTH) as u64;
        }
        let allowed = time.as_secs_f64().max(fixed * WORTH);
        // The conversion saturates; pages that take no time divide by zero.
        if for_each > 0.0 { (allowed / for_each).min(bold) as u64 } else { bold as u64 }
    }

    /// Returns the number of bytes that a call can process within this time, including its fixed
    /// part. Before the first call, uses an assumed number of bytes a second.
    pub(crate) fn fits(&self, time: Duration, assumed: f64) -> u64 {
        let [count, x, y, ..] = self.sums;
        let time = time.as_secs_f64();
        let (fixed, for_each) = match self.line() {
            _ if count == 0.0 => (0.0, 1.0 / assumed),
            // All calls had one size: smaller ones may take less, which the next call will show.
            (0.0, 0.0) => (0.0, y / x),
            line => line,
        };
        // The conversion saturates.
        if time <= fixed { 0 } else { ((time - fixed) / for_each) as u64 }
    }

    /// Records that a call for `bytes` bytes took this time.
    pub(crate) fn learn(&mut self, bytes: u64, took: Duration) {
        if bytes == 0 {
            return;
        }
        let (x, y) = (bytes as f64, took.as_secs_f64());
        self.largest = self.largest.max(x);
        let point = [1.0, x, y, x * x, x * y];
        self.sums.iter_mut().zip(point).for_each(|(sum, new)| *sum = *sum * FADING + new);
    }

    /// Returns the fixed seconds of a call, and the seconds for each byte.
    fn line(&self) -> (f64, f64) {
        let [count, x, y, xx, xy] = self.sums;
        let spread = count * xx - x * x;
        // Calls of one size do not separate the fixed part from the other.
        if spread <= xx * 1e-6 {
            return (0.0, 0.0);
        }
        let for_each = ((count * xy - x * y) / spread).max(0.0);
        (((y - for_each * x) / count).max(0.0), for_each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);
    const MICROSECOND: Duration = Duration::from_micros(1);

    /// Returns the number of pages at which calls converge if one may take 10 ms and process 2 MiB,
    /// on a machine with these times for a call and for each page.
    fn settles_at(call: Duration, page: Duration) -> u64 {
        let mut size = CallSize::new(1 << 17);
        let pages = |size: &CallSize| size.bytes(10 * MILLISECOND).clamp(1 << 16, 2 << 20) / 4096;
        for _ in 0..20 {
            let count = pages(&size);
            size.learn(count * 4096, call + page * count as u32);
        }
        pages(&size)
    }

    #[test]
    fn a_call_takes_as_long_as_it_may_beyond_what_it_takes_in_any_case() {
        assert_eq!(settles_at(MILLISECOND, MICROSECOND), 512, "2 MiB");
        let slow = settles_at(MILLISECOND, 50 * MICROSECOND);
        assert!((190..=210).contains(&slow), "{slow}: 10 ms are 200 pages");
        assert_eq!(settles_at(80 * MILLISECOND, 50 * MICROSECOND), 512, "80 ms are 1600 pages");
        let very_slow = settles_at(80 * MILLISECOND, 10 * MILLISECOND);
        assert!((16..=32).contains(&very_slow), "{very_slow}: 64 KiB are 16 pages");
    }

    #[test]
    fn growth_is_bounded_and_nothing_is_learned_from_nothing() {
        let mut size = CallSize::new(1 << 17);
        assert_eq!(size.bytes(MILLISECOND), 1 << 17);
        size.learn(0, MILLISECOND);
        assert_eq!(size.bytes(MILLISECOND), 1 << 17);
        size.learn(1 << 17, Duration::ZERO);
        assert_eq!(size.bytes(MILLISECOND), 1 << 19);
    }

    /// The larger calls of the beginning fade, and with them the estimate.
    #[test]
    fn many_calls_of_one_size_do_not_end_in_one_of_the_largest_size() {
        let mut size = CallSize::new(16 << 20);
        size.learn(64 << 20, 200 * MILLISECOND);
        for call in 0..200 {
            let bytes = size.bytes(MILLISECOND);
            assert!(call == 0 || bytes <= 8 << 20, "{call}: {bytes}");
            size.learn(2 << 20, 7 * MILLISECOND);
        }
    }

    #[test]
    fn what_fits_into_a_time_leaves_room_for_what_a_call_takes_in_any_case() {
        let mut size = CallSize::new(1 << 20);
        assert_eq!(size.fits(MILLISECOND, 1e9), 1_000_000);
        size.learn(4 << 20, 100 * MILLISECOND);
        assert_eq!(size.fits(50 * MILLISECOND, 1e9), 2 << 20, "nothing else is known");
        size.learn(2 << 20, 90 * MILLISECOND);
        let fits = |milliseconds| size.fits(milliseconds * MILLISECOND, 1e9) as f64 / 1048576.0;
        assert_eq!(fits(70), 0.0);
        assert!((fits(95) - 3.0).abs() < 0.1 && fits(120) > 7.0, "{} {}", fits(95), fits(120));
    }

    /// On machines whose CPUs are shared, some calls wait for many times as long as they work.
    #[test]
    fn one_late_call_does_not_make_the_next_ones_small_for_long() {
        let mut size = CallSize::new(1 << 17);
        let took = |pages: u64| 70 * MILLISECOND + MICROSECOND * 20 * pages as u32;
        for pages in [32, 128, 512, 512] {
            size.learn(pages * 4096, took(pages));
        }
        size.learn(512 * 4096, 300 * MILLISECOND);
        let next = size.bytes(10 * MILLISECOND) / 4096;
        size.learn(next * 4096, took(next));
        assert!(next >= 64 && size.bytes(10 * MILLISECOND) / 4096 >= 128, "{next}");
    }
}
