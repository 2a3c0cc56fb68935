//! What simulated runs come to.

use percid_rules::scan::Reason;
use serde::Serialize;

use crate::time::{Ns, SECOND};

/// All reasons, in the order of the published table.
pub const REASONS: [Reason; 7] = [
    Reason::ScanDelay,
    Reason::Unsuitable,
    Reason::SharedRo,
    Reason::Inaccessible,
    Reason::PidInactive,
    Reason::IgnorePidInactive,
    Reason::SeqCompleted,
];

/// The counts of a run, or the sums of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often each reason was traced, by its number in `Reason::ALL`.
    pub reasons: [u64; Reason::ALL.len()],
    /// Passes.
    pub passes: u64,
    /// Complete walks over a process.
    pub sequences: u64,
    /// Page-table entries of single pages that were armed.
    pub pte_updates: u64,
    /// Entries of huge pages that were armed.
    pub pmd_updates: u64,
    /// Hint faults.
    pub hint_faults: u64,
    /// Those on a page of the thread's own node.
    pub hint_faults_local: u64,
    /// Pages that were migrated, a huge page counting 512.
    pub pages_migrated: u64,
    /// Those among them that went from a node without CPUs to one with some.
    pub pages_promoted: u64,
    /// Those among them that went to a node without CPUs.
    pub pages_demoted: u64,
    /// The time that passes took, in nanoseconds.
    pub scan_ns: Ns,
}

impl Counts {
    /// Adds those of another run.
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

/// What became of a process.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What was counted.
    pub counts: Counts,
    /// From start to end.
    pub elapsed: Ns,
    /// The state at the end of each second.
    pub seconds: Vec<Second>,
}

/// How far a process has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Second {
    /// The share of its pages that were armed at least once.
    pub covered: f64,
    /// The share of the zeroed memory that is on the node of its worker.
    pub local: f64,
}

impl Outcome {
    /// The second after which this share of its pages had been armed at least once, if it came to
    /// that.
    pub fn covered_after(&self, share: f64) -> Option<u64> {
        let position = self.seconds.iter().position(|second| second.covered >= share);
        position.map(|index| index as u64 + 1)
    }

    /// From start to end, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed as f64 / SECOND as f64
    }
}
