//! Selection of the published fixes for a scan.

use super::activity::Width;

/// The order in which a pass visits the regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Ascending addresses, from the end of the last pass on, as in Linux.
    Address,
    /// An idea from the discussion of the published series, in no kernel: first the regions that
    /// the scanning thread uses, then those that several threads use, then those that any thread
    /// uses, then one region without users.
    Activity,
}

/// The rules of a scan, each of which can be selected independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The size of the sets of active threads.
    pub width: Width,
    /// The recorded state of a region counts (Linux 6.4): a new region waits, and threads that do
    /// not use it skip it. Without this rule every pass scans every region, and of the other rules
    /// only the order has an effect.
    pub track_regions: bool,
    /// Windows of activity end also for regions that the scanning thread does not use.
    pub window_before_test: bool,
    /// No region is scanned twice in a sequence.
    pub once_per_sequence: bool,
    /// A region whose scan has begun is completed by any thread.
    pub complete_partial: bool,
    /// If regions were skipped because the scanning thread does not use them, one of them is
    /// scanned nevertheless.
    pub scan_one_inactive: bool,
    /// Activity does not count in the first two sequences of the region, instead of the process.
    pub per_region_cycles: bool,
    /// A region that was skipped for more sequences than there are threads is scanned.
    pub scan_starved: bool,
    /// The order of the visits.
    pub order: Order,
}

impl Rules {
    /// Linux 6.4 to 6.6, before the published series: a region that the scanning thread does not
    /// use may never be scanned.
    pub const BASE: Rules = Rules {
        width: Width::Bits64,
        track_regions: true,
        window_before_test: false,
        once_per_sequence: false,
        complete_partial: false,
        scan_one_inactive: false,
        per_region_cycles: false,
        scan_starved: false,
        order: Order::Address,
    };

    /// The published series (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
    pub const SELECTIVE: Rules = Rules {
        window_before_test: true,
        once_per_sequence: true,
        complete_partial: true,
        scan_one_inactive: true,
        ..Rules::BASE
    };

    /// The series and the fixes that followed, as in Linux 6.12. The default.
    pub const LINUX_6_12: Rules =
        Rules { per_region_cycles: true, scan_starved: true, ..Rules::SELECTIVE };
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::LINUX_6_12
    }
}
