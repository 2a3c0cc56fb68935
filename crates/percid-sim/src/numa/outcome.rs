//! The results of simulated runs.

use percid_rules::scan::SkipReason;
use serde::Serialize;

use crate::time::{Ns, SECOND};

/// All reasons, in the order of the published table.
pub const REASONS: [SkipReason; 7] = [
    SkipReason::ScanDelay,
    SkipReason::Unsuitable,
    SkipReason::SharedRo,
    SkipReason::Inaccessible,
    SkipReason::PidInactive,
    SkipReason::IgnorePidInactive,
    SkipReason::SeqCompleted,
];

/// The counts of a run, or the sums of several runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of times that each reason was traced, indexed by its number in `SkipReason::ALL`.
    pub reasons: [u64; SkipReason::ALL.len()],
    /// Number of scan passes.
    pub passes: u64,
    /// Number of complete scan cycles over a process.
    pub sequences: u64,
    /// Number of armed page table entries of single pages.
    pub pte_updates: u64,
    /// Number of armed page table entries of huge pages.
    pub pmd_updates: u64,
    /// Number of hint faults.
    pub hint_faults: u64,
    /// Number of hint faults on a page of the thread's own node.
    pub hint_faults_local: u64,
    /// Number of migrated pages; a huge page counts as 512.
    pub pages_migrated: u64,
    /// Number of these pages that went from a node without CPUs to one with CPUs.
    pub pages_promoted: u64,
    /// Number of these pages that went to a node without CPUs.
    pub pages_demoted: u64,
    /// Duration of all passes, in nanoseconds.
    pub scan_ns: Ns,
}

impl Counts {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Counts) {
        for (sum, count) in self.reasons.iter_mut().zip(other.reasons) {
            *sum += count;
        }
        self.passes += other.passes;
        self.sequences += other.sequences;
        self.pte_updates += other.pte_updates;
        self.pmd_updates += other.pmd_updates;
        self.hint_faults += other.hint_faults;
        self.hint_faults_local += other.hint_faults_local;
        self.pages_migrated += other.pages_migrated;
        self.pages_promoted += other.pages_promoted;
        self.pages_demoted += other.pages_demoted;
        self.scan_ns += other.scan_ns;
    }
}

/// The results of a process.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Counts of the process.
    pub counts: Counts,
    /// Time from start to end.
    pub elapsed: Ns,
    /// The state at the end of each second.
    pub seconds: Vec<Second>,
}

/// Progress of a process at the end of a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Second {
    /// Share of its pages that have been armed at least once.
    pub covered: f64,
    /// Share of a round's bytes that are on the node of their worker.
    pub local: f64,
}

impl Outcome {
    /// Returns the second after which this share of its pages had been armed at least once, if it
    /// got so far.
    pub fn covered_after(&self, share: f64) -> Option<u64> {
        let position = self.seconds.iter().position(|second| second.covered >= share);
        position.map(|index| index as u64 + 1)
    }

    /// Returns the time from start to end, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed as f64 / SECOND as f64
    }
}
