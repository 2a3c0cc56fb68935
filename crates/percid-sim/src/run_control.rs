//! How a long computation is watched and stopped.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// How far a comparison or a replay has come. A watching thread may stop it.
#[derive(Debug, Default)]
pub struct RunControl {
    /// What is done, in units of which whoever watches knows the sum: events of a trace, or events
    /// that simulations were expected to have
    /// ([`Program::expected_events`](crate::workload::Program::expected_events)).
    pub done: AtomicU64,
    /// Set to end early: runs that are not over by then are left out.
    pub stop: AtomicBool,
}
