//! Progress and cancellation of long computations.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// Progress of a comparison or a replay. A watching thread may stop it.
#[derive(Debug, Default)]
pub struct RunControl {
    /// Completed work. The watcher knows the unit and the sum: events of a trace, runs of a
    /// comparison, or the expected events of simulations
    /// ([`Program::expected_events`](crate::workload::Program::expected_events)).
    pub done: AtomicU64,
    /// Ends the computation early if set: runs that are not over by then are left out.
    pub stop: AtomicBool,
}
