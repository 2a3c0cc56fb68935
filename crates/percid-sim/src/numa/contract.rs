//! The contract of a scan, as [`ScanPolicy`](super::scan_policy::ScanPolicy) states it.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use percid_rules::scan::{Effects, HUGE_PAGE, Settings, SkipReason};
use serde::Serialize;

use crate::time::Ns;

/// Maximum number of calls of one pass for each region. The rules of Linux make four: two walks,
/// each with at most two reports, or with a report and the first piece that is armed.
const CALLS_OF_REGION: u64 = 8;

/// A breach of the contract of a scan, which ends the simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScanViolation {
    /// The simulated time, in nanoseconds.
    pub at: Ns,
    /// Number of the pass, from 1.
    pub pass: u64,
    /// The thread for which the pass was made.
    pub thread: u32,
    /// The broken rule.
    pub breach: ScanBreach,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum ScanBreach {
    /// A call names a region that the process does not have.
    Region {
        /// The start address.
        region: u64,
    },
    /// An armed part is not inside its region.
    Inside {
        /// The region.
        region: Range<u64>,
        /// The part.
        part: Range<u64>,
    },
    /// The pass makes too many calls.
    Calls {
        /// The expected maximum.
        most: u64,
    },
    /// The pass inspects too much memory.
    Bytes {
        /// The expected maximum, in bytes.
        most: u64,
    },
    /// The cycle takes too many passes.
    Cycle {
        /// The expected maximum.
        most: u64,
    },
    /// The number of complete cycles falls.
    Sequence {
        /// The number before the pass.
        before: i64,
        /// The number after it.
        after: i64,
    },
}

impl std::error::Error for ScanViolation {}

impl fmt::Display for ScanViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanViolation { at, pass, thread, breach } = self;
        write!(f, "the scan breaks its contract at {at} ns: pass {pass}, by thread {thread}, ")?;
        breach.fmt(f)
    }
}

impl fmt::Display for ScanBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScanBreach::Region { region } => {
                write!(f, "names the region {region:#x}; expected the start of a region")
            }
            ScanBreach::Inside { region, part } => write!(
                f,
                "arms {:#x} to {:#x} of the region {:#x} to {:#x}; expected a part inside the region",
                part.start, part.end, region.start, region.end
            ),
            ScanBreach::Calls { most } => write!(
                f,
                "does not end; expected at most {most} calls, {CALLS_OF_REGION} for each region and \
                 one for each 2 MiB that it may inspect"
            ),
            ScanBreach::Bytes { most } => {
                write!(f, "inspects too much memory; expected at most {most} bytes")
            }
            ScanBreach::Cycle { most } => {
                write!(f, "does not end the cycle; expected at most {most} passes in a cycle")
            }
            ScanBreach::Sequence { before, after } => {
                write!(f, "counts {after} cycles after {before}; expected at least {before}")
            }
        }
    }
}

/// The progress of a scan, with the bounds of its work.
#[derive(Debug)]
pub(super) struct Contract {
    regions: Vec<Range<u64>>,
    most_calls: u64,
    most_bytes: u64,
    most_passes: u64,
    sequence: i64,
    /// Number of passes since the last end of a cycle.
    passes: u64,
}

impl Contract {
    /// Creates the contract of a scan over these regions, which are sorted.
    pub(super) fn new(regions: Vec<Range<u64>>, settings: &Settings) -> Contract {
        let (size, number) = (settings.scan_size, regions.len() as u64);
        // The budget ends a pass, and the last piece is rounded up to the end of a huge page.
        let most_bytes = settings.look_size().saturating_add(size).saturating_add(HUGE_PAGE);
        let bytes: u64 = regions.iter().map(|region| region.end - region.start).sum();
        Contract {
            regions,
            most_calls: CALLS_OF_REGION * (number + 1) + most_bytes / HUGE_PAGE,
            most_bytes,
            most_passes: number + bytes / size.max(1) + 1,
            sequence: 0,
            passes: 0,
        }
    }

    /// Makes a pass whose effects are checked.
    pub(super) fn pass(
        &self,
        effects: &mut dyn Effects,
        pass: impl FnOnce(&mut dyn Effects),
    ) -> Result<(), ScanBreach> {
        let mut checked = Checked { contract: self, effects, calls: 0, bytes: 0 };
        // Only unwinding leaves a pass that does not end. Nothing reads its state afterwards.
        let made = catch_unwind(AssertUnwindSafe(|| pass(&mut checked)));
        made.or_else(|payload| match payload.downcast::<ScanBreach>() {
            Ok(breach) => Err(*breach),
            Err(panic) => resume_unwind(panic),
        })
    }

    /// Records the number of complete cycles after a pass.
    pub(super) fn passed(&mut self, sequence: i64) -> Result<(), ScanBreach> {
        let before = std::mem::replace(&mut self.sequence, sequence);
        if sequence < before {
            return Err(ScanBreach::Sequence { before, after: sequence });
        }
        self.passes = if sequence == before { self.passes + 1 } else { 0 };
        let most = self.most_passes;
        if self.passes > most { Err(ScanBreach::Cycle { most }) } else { Ok(()) }
    }
}

/// The effects of one pass, which end it by unwinding at a breach.
struct Checked<'a> {
    contract: &'a Contract,
    effects: &'a mut dyn Effects,
    calls: u64,
    bytes: u64,
}

impl Checked<'_> {
    /// Counts a call for a region, and returns the region.
    fn called(&mut self, region: u64) -> Range<u64> {
        let Contract { regions, most_calls: most, .. } = self.contract;
        self.calls += 1;
        if self.calls > *most {
            broken(ScanBreach::Calls { most: *most });
        }
        match regions.binary_search_by_key(&region, |known| known.start) {
            Ok(index) => regions[index].clone(),
            Err(_) => broken(ScanBreach::Region { region }),
        }
    }
}

impl Effects for Checked<'_> {
    fn arm(&mut self, start: u64, part: Range<u64>) -> u64 {
        let region = self.called(start);
        let is_inside = region.start <= part.start && part.start <= part.end;
        if !is_inside || part.end > region.end {
            broken(ScanBreach::Inside { region, part });
        }
        self.bytes += part.end - part.start;
        let most = self.contract.most_bytes;
        if self.bytes > most {
            broken(ScanBreach::Bytes { most });
        }
        self.effects.arm(start, part)
    }

    fn note(&mut self, region: u64, reason: SkipReason) {
        self.called(region);
        self.effects.note(region, reason);
    }
}

/// Ends the pass, without the message of a panic.
#[cold]
fn broken(breach: ScanBreach) -> ! {
    resume_unwind(Box::new(breach))
}
