//! What one run of `percid bench` measured: as JSON, and as tables.

use std::fmt;

use serde::Serialize;

use super::increments::IncrementsReport;
use super::intermittent::IntermittentReport;
use super::mask::MaskReport;
use super::memory::MemoryReport;
use super::ops::OpsReport;
use super::published::PublishedReport;
use super::wander::WanderReport;
use crate::machine::MachineReport;
use percid_command::exit::Exit;

/// The JSON document: the keys of each part beside each other, those of parts that did not run left
/// out.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) machine: MachineReport,
    pub(super) interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<MemoryReport>,
    #[serde(flatten)]
    pub(super) ops: Option<OpsReport>,
    #[serde(flatten)]
    pub(super) increments: Option<IncrementsReport>,
    #[serde(flatten)]
    pub(super) mask: Option<MaskReport>,
    #[cfg(feature = "metrics-peers")]
    #[serde(flatten)]
    pub(super) metrics: Option<super::metrics::MetricsReport>,
    #[serde(flatten)]
    pub(super) wander: Option<WanderReport>,
    #[serde(flatten)]
    pub(super) intermittent: Option<IntermittentReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<PublishedReport>,
}

/// All tables of the parts that were measured.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.ops.as_ref().map(|part| part as &dyn fmt::Display),
            self.increments.as_ref().map(|part| part as _),
            self.mask.as_ref().map(|part| part as _),
            #[cfg(feature = "metrics-peers")]
            self.metrics.as_ref().map(|part| part as _),
            self.wander.as_ref().map(|part| part as _),
            self.intermittent.as_ref().map(|part| part as _),
            self.published.as_ref().map(|part| part as _),
        ];
        parts.into_iter().flatten().try_for_each(|part| writeln!(f, "{part}"))
    }
}

impl Document {
    pub(super) fn new() -> Self {
        Document {
            machine: MachineReport::read(),
            interrupted: false,
            memory: None,
            ops: None,
            increments: None,
            mask: None,
            #[cfg(feature = "metrics-peers")]
            metrics: None,
            wander: None,
            intermittent: None,
            published: None,
        }
    }

    pub(super) fn exit(&self) -> Exit {
        if !self.is_exact() {
            Exit::WrongCount
        } else if self.interrupted {
            Exit::Interrupted
        } else {
            Exit::Complete
        }
    }

    /// Whether everything that was counted is as it must be.
    pub(super) fn is_exact(&self) -> bool {
        self.ops.as_ref().is_none_or(|ops| ops.sums_exact)
            && self.increments.as_ref().is_none_or(|increments| increments.increments_exact)
            && self.mask.as_ref().is_none_or(|mask| mask.mask_exact)
            && self.wander.as_ref().is_none_or(|wander| wander.wander_exact)
            && self.are_metrics_exact()
    }

    #[cfg(feature = "metrics-peers")]
    fn are_metrics_exact(&self) -> bool {
        self.metrics.as_ref().is_none_or(|metrics| metrics.metrics_exact)
    }

    #[cfg(not(feature = "metrics-peers"))]
    fn are_metrics_exact(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::accounts::tests::{Conduct, benchmark_of};

    #[test]
    fn what_was_lost_or_doubled_ends_in_an_error() {
        for (conduct, exit) in [
            (Conduct::Honest, Exit::Interrupted),
            (Conduct::LosesOne, Exit::WrongCount),
            (Conduct::DoublesOne, Exit::WrongCount),
        ] {
            let mut document = Document::new();
            document.interrupted = true;
            assert_eq!(document.exit(), Exit::Interrupted);
            document.ops = Some(OpsReport::of(&benchmark_of(conduct), Duration::ZERO));
            assert_eq!(document.exit(), exit, "ops, {conduct:?}");
            document.ops = None;
            document.mask = Some(MaskReport::of(&benchmark_of(conduct)));
            assert_eq!(document.exit(), exit, "mask, {conduct:?}");
        }
    }
}
