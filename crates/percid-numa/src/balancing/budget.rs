//! The time that passes may take, and the periods between them.

use std::time::Duration;

use crate::balancing::shared::Inner;
use crate::lock::lock;

/// All passes together may take one part in 33 of the run time of the process's threads, 3 %, from
/// the beginning. In the published system a thread runs for 32 times the duration of its last pass
/// before it makes another one, which is 3.03 % in the long run.
pub(crate) const REST: u32 = 33;

impl Inner {
    /// Returns the number of bytes that a pass may arm now without exceeding its share of the time,
    /// estimated from earlier passes. Returns `None` if that is less than the minimum of a pass.
    pub(super) fn affordable(&self) -> Option<u64> {
        lock(&self.state).affordable(&self.settings, self.run_time())
    }

    /// Records the time that choosing a thread took (with many threads, most of a pass): the next
    /// choice will take as long.
    pub(super) fn note_choice(&self, took: Duration) {
        let mut state = lock(&self.state);
        state.scan_time += took;
        state.choice = took;
    }

    /// Restarts with the shortest periods if the use of the regions has changed. Returns `true` if
    /// this, or a registration, has done so since the last call.
    pub(super) fn follow_change(&self) -> bool {
        let mut state = lock(&self.state);
        let changed = state.has_changed();
        if changed {
            let counts = state.counts();
            state.timeline.begin(self.began.elapsed(), counts);
            state.begin_again(&self.settings);
        }
        std::mem::take(&mut state.begins_again)
    }

    /// Returns the shortest time between two passes that the settings permit for the regions.
    pub(super) fn least_period(&self) -> Duration {
        let bytes = lock(&self.state).entries.values().map(|entry| entry.range.len() as u64).sum();
        self.settings.periods(bytes).0
    }

    /// Returns the shortest period of the threads that were seen recently.
    pub(super) fn shortest_period(&self) -> Duration {
        lock(&self.state).periods.shortest()
    }

    /// Returns the periods of some threads, in their order.
    pub(super) fn periods_of(&self, threads: &[u32]) -> Vec<Duration> {
        let state = lock(&self.state);
        threads.iter().map(|&thread| state.periods.get(thread)).collect()
    }

    /// Returns the number of the monitor's thread, which is not the program's; 0 if there is none.
    pub(super) fn monitor_thread(&self) -> u32 {
        lock(&self.state).monitor.upgrade().map_or(0, |monitor| monitor.thread())
    }
}
