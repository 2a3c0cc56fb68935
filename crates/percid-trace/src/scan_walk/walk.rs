//! A walk of the kernel's scan over one process, as recorded in a trace.

use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Settings, SkipReason, Traits};

use super::costs::Costs;
use crate::event::Tid;

/// A region and what decides whether it is scanned.
pub type Region = (Range<u64>, Traits);

/// The walk over one process.
#[derive(Debug, Clone)]
pub struct Walk {
    /// The process.
    pub process: Tid,
    /// The source of the data.
    pub source: Source,
    /// The settings of the kernel's scan; Linux's defaults if the trace has none.
    pub settings: Settings,
    /// `true` if the trace has the settings.
    pub settings_known: bool,
    /// `true` if the process existed before the recording began, so that the scan's state for it is
    /// not known.
    pub was_there: bool,
    /// The events in order.
    pub steps: Vec<WalkStep>,
    /// The inferred facts.
    pub inferred: Inferred,
    /// Costs of balancing and moves of pages; only from probes.
    pub costs: Costs,
}

/// The source of a walk's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The trace has every pass, what it armed, and hint faults.
    Probes,
    /// The trace has only what was left out.
    Tracepoints,
}

impl Source {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Source::Probes => "probes",
            Source::Tracepoints => "tracepoints",
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum WalkStep {
    /// The regions and the number of threads since this step.
    Regions(Vec<Region>, u32),
    /// A thread used an armed page at this address.
    Hint(Tid, u64),
    /// A thread made a pass.
    Pass(Pass),
    /// The only thread of the process created another thread or process, so that the kernel counts
    /// its sequences from 0 again (`init_numa_balancing`).
    Restart,
    /// The process replaced its program: all regions are new.
    Replaced,
}

/// A pass.
#[derive(Debug, Clone)]
pub struct Pass {
    /// Start time, in nanoseconds on the trace's clock.
    pub time: u64,
    /// The same time on the clock that the scan uses.
    pub at: Duration,
    /// The thread that made it.
    pub thread: Tid,
    /// `true` if that thread's own memory policy lets pages follow their users. Inferred from the
    /// regions that the pass left out as unsuitable.
    pub balances: bool,
    /// The lines of the pass, in order.
    pub lines: Vec<Line>,
    /// The armed pieces with the number of pages that were not armed before, if the trace has that.
    pub changed: Vec<(Range<u64>, u64)>,
    /// Regions that it scanned, inferred from what it left out and where the next pass began; only
    /// for [`Source::Tracepoints`].
    pub scanned: Vec<Range<u64>>,
    /// The region that it scanned though its thread did not use it, because nothing else was left;
    /// inferred in the same way as `scanned`.
    pub forced: Option<Range<u64>>,
    /// The address at which it ended, or [`u64::MAX`] after the last region; inferred in the same
    /// way as `scanned`.
    pub stop: Option<u64>,
}

/// One action of a pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// It left the region that starts here out, or remarked on it.
    Noted(u64, SkipReason),
    /// It armed these addresses.
    Armed(u64, u64),
}

/// Facts that the trace did not contain and that later events show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inferred {
    /// Regions that no look had found and that a pass named.
    pub regions: u64,
    /// Regions whose traits were corrected by the lines of a pass.
    pub traits: u64,
    /// Passes by threads that are taken to be bound to nodes.
    pub bound_passes: u64,
    /// Passes during which the regions changed, so that a later look fits better.
    pub late_looks: u64,
}

/// The region that has an address, of regions by ascending address.
pub(super) fn region_at(regions: &[Region], address: u64) -> Option<&Region> {
    let place = regions.partition_point(|(range, _)| range.end <= address);
    regions.get(place).filter(|(range, _)| range.start <= address)
}
