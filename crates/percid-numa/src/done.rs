//! What a balancer has just done.

use std::time::Duration;

/// What a pass did; see [`Balancer::pass`](crate::Balancer::pass).
///
/// ```
/// let pass: percid_numa::Pass = percid_numa::Balancer::new().pass();
/// println!("{} pages armed, {} regions left out, in {:?}", pass.armed, pass.skipped, pass.took);
/// assert_eq!(pass, percid_numa::Pass::default(), "there are no regions");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pass {
    /// Pages that were armed.
    pub armed: u64,
    /// Regions that were left out.
    pub skipped: u64,
    /// How long it took.
    pub took: Duration,
}

/// What became of a batch; see [`Balancer::move_batch`](crate::Balancer::move_batch).
///
/// ```
/// let batch: percid_numa::Batch = percid_numa::Balancer::new().move_batch();
/// assert_eq!((batch.moved, batch.failed, batch.more), (0, 0, false));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Batch {
    /// Pages that were moved.
    pub moved: u64,
    /// Pages that could not be moved; the report has them by `errno`.
    pub failed: u64,
    /// Whether more pages are to move.
    pub more: bool,
}
