//! Which fixes a kernel has, and the ideas that none has.

use super::activity::Width;

/// In which order a pass visits the regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By address, from where the last pass ended.
    Address,
    /// The idea that was never built: first what the scanning thread uses, then what several threads use,
    /// then what any thread uses, then one region that nobody uses.
    Activity,
}

/// The rules of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The size of the activity sets.
    pub width: Width,
    /// The window of activity is turned before activity is tested, so that it turns for regions that
    /// nobody uses too.
    pub window_before_test: bool,
    /// A region is scanned completely once in a sequence.
    pub once_per_sequence: bool,
    /// A scan that has begun is ended, whoever comes by.
    pub finish_begun: bool,
    /// A pass that left out regions for inactivity walks once more and scans one of them.
    pub force_one: bool,
    /// The first two sequences, in which activity does not count, are those since the region's first visit
    /// and not since the process began.
    pub own_first_sequences: bool,
    /// A region that was left out for more sequences than the process has threads is scanned.
    pub rescue_starving: bool,
    /// The order of the visits.
    pub order: Order,
}

impl Rules {
    /// Linux 6.6, before the series.
    pub const BASE: Rules = Rules {
        width: Width::Bits64,
        window_before_test: false,
        once_per_sequence: false,
        finish_begun: false,
        force_one: false,
        own_first_sequences: false,
        rescue_starving: false,
        order: Order::Address,
    };

    /// The published series (Linux 6.7, commits ed2da8b725b9 to ef4e0604996f).
    pub const SELECTIVE: Rules = Rules {
        window_before_test: true,
        once_per_sequence: true,
        finish_begun: true,
        force_one: true,
        ..Rules::BASE
    };

    /// The series with its later fixes, as in Linux 6.12.
    pub const LINUX_6_12: Rules =
        Rules { own_first_sequences: true, rescue_starving: true, ..Rules::SELECTIVE };
}
