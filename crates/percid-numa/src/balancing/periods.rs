//! The time between passes, by thread.
//!
//! A thread adapts its own period after each sequence (when all regions were scanned), by its own
//! accesses in it, as published. Threads are identified by their bits in a set of 128: those that
//! share a bit are counted together and have one period.

use std::time::Duration;

use percid_rules::scan::{AccessCounts, Settings, Width, adapted_period};

use crate::access::pages::BITS;

/// Accesses of the threads with one bit: local, remote, private, shared; modulo 2^32.
pub(crate) type Seen = [u32; 4];

/// The periods of all threads.
#[derive(Debug)]
pub(crate) struct Periods {
    by_bit: [Duration; BITS],
    /// The counts at the last adaptation of the periods.
    before: [Seen; BITS],
    /// Bits of the threads that were seen between the last two adaptations.
    active: u128,
}

impl Periods {
    pub(crate) fn new(settings: &Settings) -> Periods {
        Periods { by_bit: [settings.period_min; BITS], before: [Seen::default(); BITS], active: 0 }
    }

    /// Returns a thread's period.
    pub(crate) fn get(&self, thread: u32) -> Duration {
        self.by_bit[Width::Bits128.bit(thread) as usize]
    }

    /// Returns the shortest period of the threads that were seen recently; of all threads, if none
    /// was.
    pub(crate) fn shortest(&self) -> Duration {
        let active = |bit: usize| self.active == 0 || self.active >> bit & 1 == 1;
        let periods = (0..BITS).filter(|&bit| active(bit)).map(|bit| self.by_bit[bit]);
        periods.min().unwrap_or_default()
    }

    /// Adapts all periods to the accesses since the last call, for regions of `bytes` in total;
    /// `failed` pages could not be moved. The counts of regions that are gone are missing.
    pub(crate) fn adapt(
        &mut self,
        seen: &[Seen; BITS],
        failed: u64,
        settings: &Settings,
        bytes: u64,
    ) {
        self.active = 0;
        for (bit, (now, before)) in seen.iter().zip(&self.before).enumerate() {
            // A count is smaller than before if a region is gone or the count has wrapped. Both are
            // rare, and cost one adaptation.
            let new = |what: usize| u64::from(now[what].saturating_sub(before[what]));
            let counts = AccessCounts {
                local: new(0),
                remote: new(1),
                private: new(2),
                shared: new(3),
                failed,
            };
            // The period of a thread that was not seen is not adapted, as published.
            if counts.local + counts.remote > 0 {
                self.active |= 1 << bit;
                self.by_bit[bit] = adapted_period(self.by_bit[bit], &counts, settings, bytes);
            }
        }
        self.before = *seen;
    }

    /// Sets all periods to the minimum for regions of `bytes` in total, because their use has
    /// changed.
    pub(crate) fn begin_again(&mut self, settings: &Settings, bytes: u64) {
        self.by_bit = [settings.periods(bytes).0; BITS];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bit(thread: u32) -> usize {
        Width::Bits128.bit(thread) as usize
    }

    #[test]
    fn each_thread_has_the_period_that_its_own_accesses_ask_for() {
        let settings = Settings::default();
        let mut periods = Periods::new(&settings);
        let mut seen = [Seen::default(); BITS];
        seen[bit(7)] = [8, 0, 8, 0];
        seen[bit(8)] = [4, 6, 1, 9];
        periods.adapt(&seen, 0, &settings, 1 << 20);
        assert_eq!(periods.get(7), Duration::from_millis(1300), "private");
        assert_eq!(periods.get(8), SECOND, "shared and remote: shorter, but not below the least");
        assert_eq!(periods.get(9), SECOND, "not seen");
        assert_eq!(periods.shortest(), SECOND);
        seen[bit(7)] = [16, 0, 16, 0];
        periods.adapt(&seen, 0, &settings, 1 << 20);
        assert_eq!((periods.get(7), periods.get(8)), (Duration::from_millis(1690), SECOND));
        assert_eq!(periods.shortest(), periods.get(7), "only that one was seen");
    }

    #[test]
    fn pages_that_cannot_be_moved_double_every_period() {
        let settings = Settings::default();
        let mut periods = Periods::new(&settings);
        let mut seen = [Seen::default(); BITS];
        seen[bit(7)] = [8, 0, 8, 0];
        periods.adapt(&seen, 1, &settings, 1 << 20);
        assert_eq!(periods.get(7), 2 * SECOND);
    }

    #[test]
    fn until_somebody_was_seen_all_periods_count() {
        let settings = Settings::default();
        let mut periods = Periods::new(&settings);
        assert_eq!(periods.shortest(), SECOND);
        periods.by_bit[0] = SECOND / 2;
        assert_eq!(periods.shortest(), SECOND / 2);
        periods.adapt(&[Seen::default(); BITS], 0, &settings, 0);
        assert_eq!((periods.shortest(), periods.active), (SECOND / 2, 0), "nobody was seen");
    }

    /// Regions of 12 passes, where the longest period is 5 s and the shortest 100 ms.
    #[test]
    fn the_size_of_the_regions_bounds_the_periods() {
        let settings = Settings::default();
        let mut periods = Periods::new(&settings);
        let mut seen = [Seen::default(); BITS];
        for _ in 0..9 {
            seen[bit(7)][1] += 1;
            periods.adapt(&seen, 0, &settings, 3 << 30);
        }
        assert_eq!(periods.get(7), 5 * SECOND);
        periods.begin_again(&settings, 3 << 30);
        assert_eq!(periods.get(7), SECOND / 10);
        // Half of the accesses are private and none is local: fewer than seven tenths.
        seen[bit(7)] = [0, 10, 10, 10];
        periods.begin_again(&settings, 0);
        periods.before = [Seen::default(); BITS];
        periods.adapt(&seen, 0, &settings, 3 << 30);
        assert_eq!(periods.get(7), SECOND * 8 / 10);
    }

    #[test]
    fn a_change_begins_again_with_the_shortest_period() {
        let settings = Settings::default();
        let mut periods = Periods::new(&settings);
        let mut seen = [Seen::default(); BITS];
        for _ in 0..20 {
            seen[bit(7)][1] += 1;
            periods.adapt(&seen, 0, &settings, 1 << 20);
        }
        assert_eq!(periods.get(7), 60 * SECOND, "nothing local, nothing shared");
        periods.begin_again(&settings, 1 << 20);
        assert_eq!(periods.get(7), SECOND);
    }
}
