//! Analyses of a recorded schedule: a file for each.

pub(crate) mod advise;
pub(crate) mod compare;
pub(crate) mod counters;
mod finding;
pub(crate) mod latency;
pub(crate) mod migrations;
pub(crate) mod names;
pub(crate) mod preemptions;
mod programs;
mod recording;
pub(crate) mod usage;
