//! How often a thread scans, and how its faults change that.

use super::settings::Settings;
use crate::{MS, Ns};

/// Ratios are in tenths.
const SLOTS: u64 = 10;
/// From this ratio on memory is where it is used, and scanning slows down.
const THRESHOLD: u64 = 7;
/// After a pass its thread may not scan for this many times what the pass took: it spends 3 % at most.
const REST: u64 = 32;

/// What a thread trapped since its period changed last, in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Pages on the thread's node.
    pub local: u64,
    /// Pages on other nodes.
    pub remote: u64,
    /// Pages whose last fault was this thread's too, or nobody's.
    pub private: u64,
    /// Pages whose last fault was another thread's.
    pub shared: u64,
    /// Pages that could not be migrated.
    pub failed: u64,
}

/// The period that follows on `period`, in whole milliseconds.
pub fn adapted(period: Ns, faults: &Faults, settings: &Settings, resident: u64) -> Ns {
    let slowest = settings.slowest(resident) / MS;
    let period = period / MS;
    if faults.local + faults.shared == 0 || faults.failed > 0 {
        return (period * 2).min(slowest) * MS;
    }
    let local = tenths(faults.local, faults.remote);
    let private = tenths(faults.private, faults.shared);
    let slot = period.div_ceil(SLOTS);
    let period = match () {
        () if private >= THRESHOLD => period + (private - THRESHOLD).max(1) * slot,
        () if local >= THRESHOLD => period + (local - THRESHOLD).max(1) * slot,
        () => period.saturating_sub((THRESHOLD - local.max(private)) * slot),
    };
    period.clamp(settings.fastest(resident) / MS, slowest) * MS
}

fn tenths(part: u64, rest: u64) -> u64 {
    (part * SLOTS).checked_div(part + rest).unwrap_or(0)
}

/// When a thread looks whether a pass is due: each time its run time has grown by its period.
#[derive(Debug, Clone)]
pub struct Clock {
    stamp: Ns,
    /// The run time between two looks.
    pub period: Ns,
}

impl Clock {
    /// The clock of a thread that has not run yet. Its first look comes after `delay` and a period.
    pub fn new(delay: Ns, period: Ns) -> Clock {
        Clock { stamp: delay, period }
    }

    /// The run time at which it looks next.
    pub fn next_look(&self) -> Ns {
        self.stamp + self.period
    }

    /// It has looked.
    pub fn looked(&mut self) {
        self.stamp += self.period;
    }

    /// It has scanned, for as long as `took`. Two ticks more leave the next turn to another thread.
    pub fn scanned(&mut self, took: Ns, tick: Ns) {
        self.stamp += 2 * tick + REST * took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn after(period_ms: u64, faults: Faults) -> u64 {
        adapted(period_ms * MS, &faults, &Settings::default(), 3 * GIB) / MS
    }

    #[test]
    fn nothing_useful_trapped_doubles_the_period() {
        assert_eq!(after(1000, Faults::default()), 2000);
        assert_eq!(after(1000, Faults { remote: 9, ..Faults::default() }), 2000);
        let failed = Faults { local: 5, private: 5, failed: 1, ..Faults::default() };
        assert_eq!(after(1000, failed), 2000);
        assert_eq!(after(4000, Faults::default()), 5000, "60 s over 12 passes is the slowest");
    }

    #[test]
    fn private_and_local_memory_slow_down_and_the_rest_speeds_up() {
        assert_eq!(
            after(1000, Faults { remote: 4, private: 4, local: 1, ..Faults::default() }),
            1300
        );
        let local = Faults { local: 8, remote: 2, private: 5, shared: 5, failed: 0 };
        assert_eq!(after(1000, local), 1100);
        let neither = Faults { local: 3, remote: 7, private: 5, shared: 5, failed: 0 };
        assert_eq!(after(1000, neither), 800, "two slots of 100 ms less");
        assert_eq!(after(110, neither), 100, "the greatest rate bounds it");
    }
}
