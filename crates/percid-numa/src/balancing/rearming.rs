//! Pages that are armed again between passes: further accesses decide on some, others are samples.

use std::sync::Arc;

use crate::access::pages::Pace;
use crate::access::region_record::RegionRecord;
use crate::balancing::arming;
use crate::balancing::shared::Inner;
use crate::lock::lock;
use crate::sys::clock;

/// Sampling between passes: one grain in `SAMPLE`, but at least `FEWEST_SAMPLES` if there are so
/// many.
const SAMPLE: usize = 64;
const FEWEST_SAMPLES: usize = 16;

/// Multiplier from the golden ratio: its consecutive multiples are spread evenly over any small
/// range (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
const GOLDEN: usize = 0x9e37_79b1;

impl Inner {
    /// Arms again, at a pace, the grains for which further accesses decide, and samples. Returns
    /// the number of pages.
    pub(super) fn rearm(&self, pace: Pace) -> u64 {
        let unsettled = |entry: &&Arc<RegionRecord>| {
            entry.pages.as_ref().is_some_and(|pages| pages.unsettled(pace) > 0)
        };
        let entries: Vec<Arc<RegionRecord>> =
            lock(&self.state).entries.values().filter(unsettled).cloned().collect();
        if entries.is_empty() {
            return 0;
        }
        let began = clock::own_run_time();
        let again = |entry: &Arc<RegionRecord>| {
            entry.pages.as_ref().map_or(0, |pages| arming::arm_again(entry, pages, pace))
        };
        let armed = entries.iter().map(again).sum();
        let mut state = lock(&self.state);
        state.scan_time += clock::own_run_time().saturating_sub(began);
        armed
    }

    /// Counts pages that were armed again and are no samples, which decide nothing.
    pub(super) fn note_rearmed(&self, pages: u64) {
        lock(&self.state).rearmed += pages;
    }

    /// Requests that a few grains of every region are armed soon, `most` at most. Another `turn`
    /// selects others.
    pub(super) fn sample(&self, turn: usize, most: usize) {
        for pages in lock(&self.state).pages() {
            let grains = pages.layout.grains();
            let step = (grains / FEWEST_SAMPLES).clamp(1, SAMPLE).max(grains.div_ceil(most));
            let first = turn.wrapping_mul(GOLDEN) % step;
            (first..grains).step_by(step).for_each(|grain| _ = pages.ask_again(grain, Pace::Soon));
        }
    }
}
