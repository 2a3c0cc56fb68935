//! The regions and the results so far: all state that threads of the program wait for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use percid_rules::scan::{HUGE_PAGE, Settings, Traits};

use crate::access::pages::{BITS, Pages};
use crate::access::region_record::RegionRecord;
use crate::access::write_protect::Monitor;
use crate::balancing::arming;
use crate::balancing::log::Log;
use crate::balancing::periods::{Periods, Seen};
use crate::balancing::timeline::{EventCounts, Timeline};
use crate::call_size::CallSize;
use crate::error::RegisterError;
use crate::migrate;

/// Divisor of the run time for a stricter limit: beyond it, no work begins that may take more time.
const BUDGET: u32 = 36;

/// The assumed speed of the first pass, in bytes a second: 4 us a page. Real machines need 0.1 to
/// 0.3 us, emulated ones about 20.
const ASSUMED: f64 = 1e9;

/// Minimum number of accesses for the decision whether the use of regions has changed. It has if
/// this share of them, 3 in 10, indicates a change. The published rule for periods regards memory
/// as well placed if at least 7 in 10 accesses are local.
const ENOUGH_TO_TELL: u64 = 8;
const CHANGED: (u64, u64) = (3, 10);

/// A change that the scan has not processed yet.
#[derive(Debug)]
pub(crate) enum Change {
    /// Contains the time since the balancer was made.
    Registered(Range<u64>, Traits, Duration),
    Unregistered(u64),
}

/// The state that threads of the program change and read.
#[derive(Debug)]
pub(crate) struct BalancerState {
    pub(crate) entries: BTreeMap<usize, Arc<RegionRecord>>,
    /// The changes since the last pass, in order.
    pub(crate) changes: Vec<Change>,
    pub(crate) log: Log,
    /// The sequence of the scan at the last pass.
    pub(crate) sequence: i64,
    pub(crate) passes: u64,
    /// Pages that passes have armed, and pages that were armed again for another look.
    pub(crate) armed: u64,
    pub(crate) rearmed: u64,
    pub(crate) timeline: Timeline,
    pub(crate) unreadable_passes: u64,
    pub(crate) scan_time: Duration,
    /// Duration of the last choice of a thread.
    pub(crate) choice: Duration,
    pub(crate) move_time: Duration,
    pub(crate) periods: Periods,
    /// Sizes of passes, batches and pieces.
    pub(crate) pass_size: CallSize,
    pub(crate) batch_size: CallSize,
    pub(crate) piece_size: CallSize,
    /// Pages that could not be moved since the last adaptation of the periods.
    pub(crate) failed: u64,
    /// `true` if the periods were reset to the shortest since the last check by the balancer's
    /// thread.
    pub(crate) begins_again: bool,
    /// Accesses, and those among them that indicated a change, at the last check for a change.
    asked_before: (u64, u64),
    /// The start of the region of the last batch.
    pub(crate) moved_last: usize,
    /// The monitor, while some region needs it.
    pub(crate) monitor: Weak<Monitor>,
}

impl BalancerState {
    pub(crate) fn new(settings: &Settings) -> BalancerState {
        BalancerState {
            entries: BTreeMap::new(),
            changes: Vec::new(),
            log: Log::default(),
            sequence: 0,
            passes: 0,
            armed: 0,
            rearmed: 0,
            timeline: Timeline::default(),
            unreadable_passes: 0,
            scan_time: Duration::ZERO,
            choice: Duration::ZERO,
            move_time: Duration::ZERO,
            periods: Periods::new(settings),
            pass_size: CallSize::new(HUGE_PAGE),
            batch_size: migrate::FIRST_BATCH_SIZE,
            piece_size: arming::FIRST_PIECE_SIZE,
            failed: 0,
            begins_again: false,
            asked_before: (0, 0),
            moved_last: 0,
            monitor: Weak::new(),
        }
    }

    /// Returns the monitor, and starts it if there is none.
    pub(crate) fn monitor(&mut self) -> Result<Arc<Monitor>, RegisterError> {
        if let Some(monitor) = self.monitor.upgrade() {
            return Ok(monitor);
        }
        let monitor = Arc::new(Monitor::start()?);
        self.monitor = Arc::downgrade(&monitor);
        Ok(monitor)
    }

    pub(crate) fn pages(&self) -> impl Iterator<Item = &Pages> {
        self.entries.values().filter_map(|entry| entry.pages.as_ref())
    }

    /// Returns the number of bytes that a pass may arm if the process has run for `ran`.
    pub(crate) fn affordable(&self, settings: &Settings, ran: Duration) -> Option<u64> {
        let time = (ran / BUDGET).saturating_sub(self.scan_time + self.choice);
        let fits = self.pass_size.fits(time, ASSUMED);
        (fits >= HUGE_PAGE).then_some(settings.scan_size.min(fits))
    }

    /// Returns the counts that the timeline needs.
    pub(crate) fn counts(&self) -> EventCounts {
        let sum = |of: fn(&Pages) -> u64| self.pages().map(of).sum();
        EventCounts {
            armed: self.armed,
            seen: sum(|pages| pages.seen().local + pages.seen().remote),
            pending: sum(|pages| pages.pending()),
            rearmed: self.rearmed,
        }
    }

    /// Ends a sequence: adapts the periods to the accesses in it, for regions of `bytes` in total.
    pub(crate) fn adapt(&mut self, settings: &Settings, bytes: u64) {
        let mut seen = [Seen::default(); BITS];
        for pages in self.pages() {
            for (bit, sum) in seen.iter_mut().enumerate() {
                let of_region = pages.seen_by(bit);
                sum.iter_mut().zip(of_region).for_each(|(sum, new)| *sum = sum.wrapping_add(new));
            }
        }
        let failed = std::mem::take(&mut self.failed);
        self.periods.adapt(&seen, failed, settings, bytes);
        self.pages().for_each(|pages| pages.age());
    }

    /// Restarts all threads with the shortest period.
    pub(crate) fn begin_again(&mut self, settings: &Settings) {
        let bytes = self.entries.values().map(|entry| entry.range.len() as u64).sum();
        self.periods.begin_again(settings, bytes);
        self.begins_again = true;
    }

    /// Returns `true` if the accesses since the last call show that the use of the regions has
    /// changed. Decides only after enough accesses.
    pub(crate) fn has_changed(&mut self) -> bool {
        let sums = self.pages().fold((0, 0), |(all, changes), pages| {
            let seen = pages.seen();
            (all + seen.local + seen.remote, changes + pages.changes())
        });
        // The sums are smaller than before if a region is gone.
        let before = (self.asked_before.0.min(sums.0), self.asked_before.1.min(sums.1));
        let (all, changes) = (sums.0 - before.0, sums.1 - before.1);
        self.asked_before = before;
        if all < ENOUGH_TO_TELL {
            return false;
        }
        self.asked_before = sums;
        changes * CHANGED.1 >= all * CHANGED.0
    }

    pub(crate) fn overlapping(&self, range: &Range<usize>) -> Option<usize> {
        let below = self.entries.range(..range.end).next_back()?.1;
        (below.range.end > range.start).then_some(below.range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that a balancer may arm if the process has run for `ran` and passes took
    /// `spent` of that.
    fn affordable(ran: Duration, spent: Duration) -> Option<u64> {
        let mut state = BalancerState::new(&Settings::default());
        state.scan_time = spent;
        state.affordable(&Settings::default(), ran)
    }

    #[test]
    fn passes_cost_three_percent_of_the_time_and_no_more() {
        let (second, all) = (Duration::from_secs(1), Settings::default().scan_size);
        assert_eq!(affordable(36 * second, second + second / 10), None, "all is spent");
        assert_eq!(affordable(Duration::ZERO, Duration::ZERO), None, "nothing yet");
        assert_eq!(affordable(36 * second, second / 2), Some(all));
        // The time of the next choice of a thread counts too.
        let mut state = BalancerState::new(&Settings::default());
        state.choice = second;
        assert_eq!(state.affordable(&Settings::default(), 36 * second), None);
        assert_eq!(state.affordable(&Settings::default(), 72 * second), Some(all));
        let little = affordable(36 * second, second - second / 100);
        assert_eq!(little, Some(10_000_000), "a hundredth of a second, at 1 GB a second");
    }
}
