//! The changes between two reports.

use serde::Serialize;

use super::change::Change;
use crate::numa::kernel_counters::KernelCounters;

/// An interval; a line of `percid numa watch --json`.
#[derive(Debug, Serialize)]
pub(super) struct Interval {
    /// Time since the first report.
    pub(super) seconds: f64,
    /// Increase of the kernel's own counters, of the whole machine, in the interval.
    pub(super) kernel_counters: KernelCounters,
    pub(super) balancers: Vec<Change>,
}
