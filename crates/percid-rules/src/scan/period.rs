//! The scan period: its published adaptation to the observed accesses.

use core::time::Duration;

use super::settings::Settings;

/// The share in tenths from which on memory counts as well placed.
const MIN_WELL_PLACED_TENTHS: u64 = 7;
const TENTHS: u64 = 10;

/// Accesses to armed pages since the last adaptation of the period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// Accesses by threads on the page's own node.
    pub local: u64,
    /// Accesses by threads on other nodes.
    pub remote: u64,
    /// Accesses by the thread that accessed the page before, and first accesses to a page.
    pub private: u64,
    /// Accesses by another thread than the one before.
    pub shared: u64,
    /// Pages that could not be moved.
    pub failed: u64,
}

/// Returns the next period, for regions of `bytes` in total, in whole milliseconds.
pub fn adapted_period(
    period: Duration,
    seen: &AccessCounts,
    settings: &Settings,
    bytes: u64,
) -> Duration {
    let (shortest, longest) = settings.periods(bytes);
    if seen.failed > 0 || seen.local + seen.shared == 0 {
        return (period * 2).min(longest);
    }
    let slot = Duration::from_millis(period.as_millis().div_ceil(u128::from(TENTHS)) as u64);
    let local = share(seen.local, seen.remote);
    let private = share(seen.private, seen.shared);
    let slots = |tenths: u64| slot * tenths as u32;
    // Tested first: memory that few threads share cannot be placed any better, local or not.
    let next = if private >= MIN_WELL_PLACED_TENTHS {
        period + slots((private - MIN_WELL_PLACED_TENTHS).max(1))
    } else if local >= MIN_WELL_PLACED_TENTHS {
        period + slots((local - MIN_WELL_PLACED_TENTHS).max(1))
    } else {
        period.saturating_sub(slots(MIN_WELL_PLACED_TENTHS - local.max(private)))
    };
    next.clamp(shortest, longest)
}

fn share(part: u64, rest: u64) -> u64 {
    (part * TENTHS).checked_div(part + rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the period that follows 1000 ms, for 3 GiB.
    fn after_a_second(local: u64, remote: u64, private: u64, shared: u64, failed: u64) -> u128 {
        let seen = AccessCounts { local, remote, private, shared, failed };
        adapted_period(Duration::from_secs(1), &seen, &Settings::default(), 3 << 30).as_millis()
    }

    #[test]
    fn nothing_useful_doubles_the_period() {
        assert_eq!(after_a_second(0, 0, 0, 0, 0), 2000);
        assert_eq!(after_a_second(0, 9, 9, 0, 0), 2000, "nothing local, nothing shared");
        assert_eq!(after_a_second(5, 0, 5, 0, 1), 2000, "a page that cannot be moved");
    }

    /// Returns the period that follows 100 s, far from every bound.
    fn after_long(local: u64, private: u64) -> u64 {
        let seen =
            AccessCounts { local, remote: 10 - local, private, shared: 10 - private, failed: 0 };
        let settings = Settings { period_max: Duration::from_secs(9999), ..Settings::default() };
        adapted_period(Duration::from_secs(100), &seen, &settings, 0).as_secs()
    }

    /// The result in tenths of the period, starting from 100 s.
    #[test]
    fn each_tenth_above_or_below_seven_counts_and_one_at_the_least() {
        for (tenths, period) in [(10, 130), (9, 120), (8, 110), (7, 110)] {
            assert_eq!(after_long(1, tenths), period, "private: {tenths}");
            assert_eq!(after_long(tenths, 1), period, "local: {tenths}");
        }
        for (tenths, period) in [(6, 90), (4, 70), (1, 40)] {
            assert_eq!(after_long(1, tenths), period, "private: {tenths}");
            assert_eq!(after_long(tenths, 1), period, "local: {tenths}");
        }
    }

    #[test]
    fn well_placed_memory_is_scanned_less_and_other_memory_more() {
        assert_eq!(after_a_second(1, 4, 4, 0, 0), 1300, "private");
        assert_eq!(after_a_second(8, 2, 5, 5, 0), 1100, "local");
        assert_eq!(after_a_second(9, 0, 5, 5, 0), 1300, "all of it");
        assert_eq!(after_a_second(3, 7, 5, 5, 0), 800, "neither");
        assert_eq!(after_a_second(0, 0, 0, 5, 0), 300, "none by threads of a node");
    }

    #[test]
    fn the_bounds_hold() {
        let seen = AccessCounts { remote: 9, local: 1, shared: 10, ..AccessCounts::default() };
        let short =
            adapted_period(Duration::from_millis(101), &seen, &Settings::default(), 3 << 30);
        assert_eq!(short.as_millis(), 100);
        let none = adapted_period(
            Duration::from_secs(59),
            &AccessCounts::default(),
            &Settings::default(),
            0,
        );
        assert_eq!(none.as_secs(), 60);
        let seen = AccessCounts::default();
        let of_12 = adapted_period(Duration::from_secs(4), &seen, &Settings::default(), 3 << 30);
        assert_eq!(of_12.as_secs(), 5);
    }
}
