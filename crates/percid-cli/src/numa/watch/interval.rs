//! What happened between two reports.

use serde::Serialize;

use super::change::Change;

/// An interval; a line of `percid numa watch --json`.
#[derive(Debug, Serialize)]
pub(super) struct Interval {
    /// Since the first report.
    pub(super) seconds: f64,
    pub(super) balancers: Vec<Change>,
}
