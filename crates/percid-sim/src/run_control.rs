//! Progress and cancellation of long computations.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Progress of a comparison or a replay. A watching thread may stop it.
#[derive(Debug, Default)]
pub struct RunControl {
    /// Completed work. The watcher knows the unit and the sum: events of a trace, runs of a
    /// comparison, or the expected events of simulations
    /// ([`Program::expected_events`](crate::workload::Program::expected_events)).
    pub done: AtomicU64,
    /// Called after `done` has changed, with its new value, on the thread that computes: for
    /// platforms on which no other thread can watch. Simulations call it, replays do not.
    pub on_progress: Option<fn(u64)>,
    /// Ends the computation early if set: runs that are not over by then are left out.
    pub stop: AtomicBool,
}

impl RunControl {
    /// Adds completed work.
    pub(crate) fn add(&self, units: u64) {
        let done = self.done.fetch_add(units, Relaxed) + units;
        if let Some(tell) = self.on_progress {
            tell(done);
        }
    }
}
