//! The report: counts of a balancer's work and of the accesses that it detected.

pub(crate) mod event;
pub(crate) mod placement_timeline;

use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::SkipReason;

use crate::access_method::AccessMethod;
use crate::report::placement_timeline::PlacementTimeline;

/// A snapshot of a balancer's counts; see [`Balancer::report`](crate::Balancer::report).
///
/// ```
/// let report: percid_numa::Report = percid_numa::Balancer::new().report();
/// println!("{} nodes, {} passes, every {:?}", report.nodes.len(), report.passes, report.period);
/// assert_eq!(report.events_lost, 0);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// The nodes that have memory. If there is only one, nothing is ever armed.
    pub nodes: Vec<u32>,
    /// Those among them that have no CPUs, if [`Settings::tiers`](crate::Settings::tiers) uses
    /// them.
    pub slow_nodes: Vec<u32>,
    /// Number of sequences: how often all regions have been scanned.
    pub sequence: i64,
    /// Number of passes.
    pub passes: u64,
    /// Number of passes that armed nothing because the process's mappings could not be read.
    pub unreadable_passes: u64,
    /// The present time from one pass to the next.
    pub period: Duration,
    /// Total run time of the passes (not wall time), including the choice of the thread for each
    /// pass.
    pub scan_time: Duration,
    /// Time spent on moving pages.
    pub move_time: Duration,
    /// Age of the balancer.
    pub age: Duration,
    /// Total run time of all threads of the process since the balancer was made.
    pub run_time: Duration,
    /// Number of threads of the process.
    pub threads: usize,
    /// Number of threads that share a bit of the sets of active threads with another thread.
    pub collisions: usize,
    /// Number of events that were lost because they were not taken in time.
    pub events_lost: u64,
    /// The times of placing memory: the last 16 episodes, oldest first, if the balancer's own
    /// thread made the passes.
    pub timeline: Vec<PlacementTimeline>,
    /// The regions by ascending address.
    pub regions: Vec<RegionReport>,
}

/// Counts of a region: the balancer's work, and the accesses that it detected.
///
/// ```
/// use percid_numa::{Balancer, RegionReport};
///
/// let table = vec![7u8; 2 << 20];
/// let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
/// let balancer = Balancer::new();
/// let _region = balancer.register(start, 1 << 20)?;
/// let of: &RegionReport = &balancer.report().regions[0];
/// println!("{:?}: {:?} pages by node, {} moved", of.range, of.pages_by_node, of.moved);
/// assert!(!of.gone);
/// # Ok::<(), percid_numa::RegisterError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RegionReport {
    /// The addresses of the region.
    pub range: Range<usize>,
    /// The method by which accesses are detected.
    pub access: AccessMethod,
    /// `true` if the memory is no longer what was registered; then it is left alone.
    pub gone: bool,
    /// Number of pages on each node that has any; looked up for this report.
    pub pages_by_node: Vec<(u32, u64)>,
    /// Number of pages that have no memory yet.
    pub absent: u64,
    /// Number of first accesses to armed grains by threads on the grain's node.
    pub local: u64,
    /// Number of first accesses to armed grains by threads on other nodes.
    pub remote: u64,
    /// Number of first accesses to armed grains by the same thread as before, or by the first
    /// thread.
    pub private: u64,
    /// Number of first accesses to armed grains by another thread than before.
    pub shared: u64,
    /// Number of first writes to armed grains by threads that could not be looked up: of another
    /// process, or ended.
    pub unattributed: u64,
    /// Number of recent accesses from each node; halved every sequence.
    pub recent_accesses_by_node: Vec<(u32, u64)>,
    /// Number of distinct bits of the threads that used the region recently.
    pub active: u32,
    /// Number of pages that were armed.
    pub scanned: u64,
    /// Number of times that each reason was given; all reasons.
    pub skipped: [(SkipReason, u64); SkipReason::ALL.len()],
    /// Number of pages that were moved.
    pub moved: u64,
    /// Number of moved pages that went from a slow node to one with CPUs.
    pub promoted: u64,
    /// Number of moved pages that went to a slow node.
    pub demoted: u64,
    /// Number of grains with a pending move.
    pub pending: u64,
    /// Number of pages that could not be looked up, armed or moved, by `errno`.
    pub failed: Vec<(i32, u64)>,
    /// Number of times that all grains were disarmed because the process had too many mappings.
    pub disarmed_whole: u64,
    /// Time spent on arming.
    pub scan_time: Duration,
    /// Time spent on moving.
    pub move_time: Duration,
}

impl Report {
    /// Returns the share of the process's run time that the balancer's passes took, from 0 to 1. It
    /// is 3 % at most, as for the published system, plus the time by which the last pass exceeded
    /// its estimate.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// assert_eq!(balancer.report().scan_share(), 0.0, "no pass yet");
    /// ```
    pub fn scan_share(&self) -> f64 {
        self.scan_time.as_secs_f64() / self.run_time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl RegionReport {
    /// Returns the share of accesses that were local, from 0 to 1; `None` before the first access.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// # let balancer = percid_numa::Balancer::new();
    /// let _region = balancer.register(start, 1 << 20)?;
    /// assert_eq!(balancer.report().regions[0].local_share(), None);
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn local_share(&self) -> Option<f64> {
        let all = self.local + self.remote;
        (all > 0).then(|| self.local as f64 / all as f64)
    }

    /// Returns the share of the region's memory that is on a node, from 0 to 1; 0 if there is none.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// # let balancer = percid_numa::Balancer::new();
    /// let _region = balancer.register(start, 1 << 20)?;
    /// let report = balancer.report();
    /// let sum: f64 = report.nodes.iter().map(|&node| report.regions[0].share_on(node)).sum();
    /// assert!(sum == 0.0 || (sum - 1.0).abs() < 1e-9, "all, if the kernel says");
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn share_on(&self, node: u32) -> f64 {
        let all: u64 = self.pages_by_node.iter().map(|(_, pages)| pages).sum();
        let there = self.pages_by_node.iter().find(|(other, _)| *other == node);
        there.map_or(0.0, |(_, pages)| *pages as f64 / all as f64)
    }

    /// Returns the number of times that a reason was given.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// # let balancer = percid_numa::Balancer::new();
    /// use percid_numa::SkipReason;
    ///
    /// let _region = balancer.register(start, 1 << 20)?;
    /// assert_eq!(balancer.report().regions[0].skipped_for(SkipReason::PidInactive), 0);
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn skipped_for(&self, reason: SkipReason) -> u64 {
        self.skipped[reason as usize].1
    }
}
