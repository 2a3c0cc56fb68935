//! Which of the published fixes a walk has.

use super::activity::Width;

/// The rules of a walk, each of which can be chosen by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The size of the sets of active threads.
    pub width: Width,
    /// Windows of activity end also for regions that the scanning thread does not use.
    pub window_before_test: bool,
    /// No region is scanned twice in a sequence.
    pub once_per_sequence: bool,
    /// A region whose scan has begun is completed, whoever scans.
    pub complete_partial: bool,
    /// If regions were left out because the scanning thread does not use them, one of them is scanned
    /// nevertheless.
    pub force_inactive: bool,
    /// A region's own first two sequences are scanned whoever uses it, not the process's.
    pub own_first_sequences: bool,
    /// A region that was left out for more sequences than there are threads is scanned.
    pub end_starvation: bool,
}

impl Rules {
    /// Linux 6.6, before the published series: what is not used by whoever scans may never be scanned.
    pub const BASE: Rules = Rules {
        width: Width::Bits64,
        window_before_test: false,
        once_per_sequence: false,
        complete_partial: false,
        force_inactive: false,
        own_first_sequences: false,
        end_starvation: false,
    };

    /// The published series (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
    pub const SELECTIVE: Rules = Rules {
        window_before_test: true,
        once_per_sequence: true,
        complete_partial: true,
        force_inactive: true,
        ..Rules::BASE
    };

    /// The series and the fixes that followed, as in Linux 6.12. The default.
    pub const FIXED: Rules =
        Rules { own_first_sequences: true, end_starvation: true, ..Rules::SELECTIVE };
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::FIXED
    }
}
