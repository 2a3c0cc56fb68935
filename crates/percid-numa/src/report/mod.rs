//! What a balancer has done and seen, in plain numbers.

pub(crate) mod episode;
pub(crate) mod event;

use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::Reason;

use crate::access_method::AccessMethod;
use crate::report::episode::Episode;

/// A snapshot; see [`Balancer::report`](crate::Balancer::report).
///
/// ```
/// let report: percid_numa::Report = percid_numa::Balancer::new().report();
/// println!("{} nodes, {} passes, every {:?}", report.nodes.len(), report.passes, report.period);
/// assert_eq!(report.events_lost, 0);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// The nodes that have memory. With one, nothing is ever armed.
    pub nodes: Vec<u32>,
    /// Those among them that have no CPUs, where [`Settings::tiers`](crate::Settings::tiers) makes
    /// use of them.
    pub slow_nodes: Vec<u32>,
    /// How often all regions have been walked.
    pub sequence: i64,
    /// How many passes were made.
    pub passes: u64,
    /// How many of them armed nothing because the process's mappings could not be read.
    pub blind_passes: u64,
    /// The time from one pass to the next, at present.
    pub period: Duration,
    /// How long the passes ran together, with choosing the thread that each was made for: run time,
    /// not wall time.
    pub scan_time: Duration,
    /// How long moving pages took.
    pub move_time: Duration,
    /// How long the balancer has existed.
    pub age: Duration,
    /// How long all threads of the process have run meanwhile, together.
    pub run_time: Duration,
    /// How many threads the process has.
    pub threads: usize,
    /// How many of them share their bit in the sets of active threads with another.
    pub collisions: usize,
    /// Events that were lost because they were not taken in time.
    pub events_lost: u64,
    /// Where the time went until memory was placed: the last 16 times, oldest first, as far as the
    /// balancer's own thread made the passes.
    pub timeline: Vec<Episode>,
    /// By ascending address.
    pub regions: Vec<RegionReport>,
}

/// What was done to a region, and what was seen there.
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
    /// Its addresses.
    pub range: Range<usize>,
    /// How access to it is seen.
    pub access: AccessMethod,
    /// Whether its memory is no longer what was registered; then it is left alone.
    pub gone: bool,
    /// Pages on each node that has any; looked up for this report.
    pub pages_by_node: Vec<(u32, u64)>,
    /// Pages that have no memory yet.
    pub absent: u64,
    /// First accesses to armed grains by threads on the grain's node.
    pub local: u64,
    /// The same by threads on other nodes.
    pub remote: u64,
    /// First accesses to armed grains by the thread that was seen there before, or where none was.
    pub private: u64,
    /// The same by other threads.
    pub shared: u64,
    /// First writes to armed grains by threads that could not be looked up: of another process, or
    /// gone.
    pub unattributed: u64,
    /// How much each node has used the region of late: accesses, halved every sequence.
    pub use_by_node: Vec<(u32, u64)>,
    /// Distinct bits of the threads that used it of late.
    pub active: u32,
    /// Pages that were armed.
    pub scanned: u64,
    /// How often each reason was given; all reasons.
    pub skipped: [(Reason, u64); Reason::ALL.len()],
    /// Pages that were moved.
    pub moved: u64,
    /// Those among them that went from a slow node to one with CPUs.
    pub promoted: u64,
    /// Those among them that went to a slow node.
    pub demoted: u64,
    /// Grains that are to move.
    pub pending: u64,
    /// Pages that could not be looked up, armed or moved, by `errno`.
    pub failed: Vec<(i32, u64)>,
    /// How often all grains were disarmed because the process had too many mappings.
    pub disarmed_whole: u64,
    /// Time spent on arming.
    pub scan_time: Duration,
    /// Time spent on moving.
    pub move_time: Duration,
}

impl Report {
    /// Returns the share of the process's run time that the balancer's passes took, from 0 to 1: 3 %
    /// at most, as for the published system, but for what the last pass took longer than expected.
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
    /// Returns the share of accesses that were local, from 0 to 1; `None` before any was seen.
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

    /// Returns how often a reason was given.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// # let balancer = percid_numa::Balancer::new();
    /// use percid_numa::Reason;
    ///
    /// let _region = balancer.register(start, 1 << 20)?;
    /// assert_eq!(balancer.report().regions[0].skipped_for(Reason::PidInactive), 0);
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn skipped_for(&self, reason: Reason) -> u64 {
        self.skipped[reason as usize].1
    }
}
