//! Results of a balancer's passes and batches.

use std::time::Duration;

/// Result of a pass; see [`Balancer::pass`](crate::Balancer::pass).
///
/// ```
/// let pass: percid_numa::Pass = percid_numa::Balancer::new().pass();
/// println!("{} pages armed, {} regions left out, in {:?}", pass.armed, pass.skipped, pass.took);
/// assert_eq!(pass, percid_numa::Pass::default(), "there are no regions");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pass {
    /// Number of pages that were armed.
    pub armed: u64,
    /// Number of regions that were skipped.
    pub skipped: u64,
    /// Duration of the pass.
    pub took: Duration,
}

/// Result of a batch; see [`Balancer::move_batch`](crate::Balancer::move_batch).
///
/// ```
/// let batch: percid_numa::Batch = percid_numa::Balancer::new().move_batch();
/// assert_eq!((batch.moved, batch.failed, batch.more), (0, 0, false));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Batch {
    /// Number of pages that were moved.
    pub moved: u64,
    /// Number of pages that could not be moved; the report counts them by `errno`.
    pub failed: u64,
    /// `true` if more pages have a pending move.
    pub more: bool,
}
