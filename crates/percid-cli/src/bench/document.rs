//! The measurements of one run of `percid bench`, as JSON and as tables.

use std::fmt;

use serde::Serialize;

use super::increments::IncrementsReport;
use super::intermittent::IntermittentReport;
use super::mask::MaskReport;
use super::memory::MemoryReport;
use super::ops::OpsReport;
use super::published::PublishedReport;
use super::wander::WanderReport;
use crate::judged::{Judged, NoiseOf};
use crate::machine::MachineReport;
use percid_command::exit::Exit;

/// The JSON document: the keys of all parts side by side, without those of parts that did not run.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) machine: MachineReport,
    pub(super) interrupted: bool,
    /// Parts whose times are noise.
    pub(super) noise: Vec<NoiseOf>,
    /// Parts that lack rows, or rounds of some, because the time was over.
    pub(super) partial: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<MemoryReport>,
    #[serde(flatten)]
    pub(super) ops: Option<Judged<OpsReport>>,
    #[serde(flatten)]
    pub(super) increments: Option<Judged<IncrementsReport>>,
    #[serde(flatten)]
    pub(super) mask: Option<Judged<MaskReport>>,
    #[cfg(feature = "metrics-peers")]
    #[serde(flatten)]
    pub(super) metrics: Option<Judged<super::metrics::MetricsReport>>,
    #[serde(flatten)]
    pub(super) sync: Option<Judged<super::sync::SyncReport>>,
    #[serde(flatten)]
    pub(super) alloc: Option<Judged<super::alloc::AllocReport>>,
    #[serde(flatten)]
    pub(super) wander: Option<Judged<WanderReport>>,
    #[serde(flatten)]
    pub(super) intermittent: Option<Judged<IntermittentReport>>,
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
            self.sync.as_ref().map(|part| part as _),
            self.alloc.as_ref().map(|part| part as _),
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
            noise: Vec::new(),
            partial: Vec::new(),
            memory: None,
            ops: None,
            increments: None,
            mask: None,
            #[cfg(feature = "metrics-peers")]
            metrics: None,
            sync: None,
            alloc: None,
            wander: None,
            intermittent: None,
            published: None,
        }
    }

    /// Collects the noise and the missing rows that the parts report.
    pub(super) fn sum_up(&mut self) {
        let mut said = Vec::new();
        said.extend(self.ops.as_ref().map(|part| (part.noise(), part.partial())));
        said.extend(self.increments.as_ref().map(|part| (part.noise(), part.partial())));
        said.extend(self.mask.as_ref().map(|part| (part.noise(), part.partial())));
        #[cfg(feature = "metrics-peers")]
        said.extend(self.metrics.as_ref().map(|part| (part.noise(), part.partial())));
        said.extend(self.sync.as_ref().map(|part| (part.noise(), part.partial())));
        said.extend(self.alloc.as_ref().map(|part| (part.noise(), part.partial())));
        said.extend(self.wander.as_ref().map(|part| (part.noise(), part.partial())));
        said.extend(self.intermittent.as_ref().map(|part| (part.noise(), part.partial())));
        said.extend(self.published.as_ref().map(|part| (part.noise(), part.partial())));
        let (noise, partial): (Vec<_>, Vec<_>) = said.into_iter().unzip();
        self.noise = noise.into_iter().flatten().collect();
        self.partial = partial.into_iter().flatten().collect();
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

    /// Returns `true` if all counts are exact.
    pub(super) fn is_exact(&self) -> bool {
        self.ops.as_ref().is_none_or(|ops| ops.report.sums_exact)
            && self.increments.as_ref().is_none_or(|increments| increments.report.increments_exact)
            && self.mask.as_ref().is_none_or(|mask| mask.report.mask_exact)
            && self.sync.as_ref().is_none_or(|sync| sync.report.sync_exact)
            && self.alloc.as_ref().is_none_or(|alloc| alloc.report.alloc_exact)
            && self.wander.as_ref().is_none_or(|wander| wander.report.wander_exact)
            && self.are_metrics_exact()
    }

    #[cfg(feature = "metrics-peers")]
    fn are_metrics_exact(&self) -> bool {
        self.metrics.as_ref().is_none_or(|metrics| metrics.report.metrics_exact)
    }

    #[cfg(not(feature = "metrics-peers"))]
    fn are_metrics_exact(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use crate::bench::accounts::tests::{Conduct, benchmark_of};
    use crate::bench::intermittent::Row;
    use crate::busy::Noise;
    use crate::judged::Circumstances;

    /// Collects all times: each is below one of these keys, at any depth.
    fn times(value: &Value, found: &mut Vec<Value>) {
        let is_time = |key: &str| key.contains("ns_") || key.contains("ratio_") || key == "median";
        match value {
            Value::Object(members) => members.iter().for_each(|(key, member)| match member {
                Value::Object(_) | Value::Array(_) => times(member, found),
                _ if is_time(key) => found.push(member.clone()),
                _ => {}
            }),
            Value::Array(items) => items.iter().for_each(|item| times(item, found)),
            _ => {}
        }
    }

    #[test]
    fn noise_leaves_no_time_in_the_document_and_every_count() {
        let document = |noise| {
            let mut document = Document::new();
            let circumstances = Circumstances { noise, partial: noise.is_some() };
            let benchmark = benchmark_of(Conduct::Honest);
            let ops = OpsReport::of(&benchmark, Duration::ZERO);
            document.ops = Some(Judged::new(ops, circumstances));
            let rows = vec![Row::fixed("table", 10, 2616.0, 1)];
            let intermittent = IntermittentReport::fixed(rows);
            document.intermittent = Some(Judged::new(intermittent, circumstances));
            document.sum_up();
            (serde_json::to_value(&document).expect("a document"), document.to_string())
        };
        let (quiet, _) = document(None);
        let (busy, text) = document(Some(Noise { runnable_threads: 4, cpus: 2 }));
        let (mut shown, mut hidden) = (Vec::new(), Vec::new());
        times(&quiet, &mut shown);
        times(&busy, &mut hidden);
        assert!(shown.len() == hidden.len() && shown.iter().any(Value::is_f64), "{quiet}");
        assert!(hidden.iter().all(Value::is_null), "{busy}");
        assert_eq!(quiet["noise"], serde_json::json!([]));
        assert_eq!(busy["noise"][0]["part"], "ops");
        assert_eq!(busy["partial"], serde_json::json!(["ops", "intermittent"]));
        for (part, count) in [("sums", "added"), ("results", "rounds"), ("rows", "ids_used")] {
            let of = |document: &Value| document[part][0][count].as_u64();
            assert!(of(&busy) > Some(0) && of(&quiet) > Some(0), "{part} {count}");
        }
        assert_eq!(text.matches("the machine was busy: 4 runnable threads on 2 CPUs").count(), 2);
        assert!(text.contains("every count is exact") && text.contains("per CPU"), "{text}");
        assert!(!text.contains("ns hot") && !text.contains("2616"), "{text}");
    }

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
            document.ops = Some(OpsReport::of(&benchmark_of(conduct), Duration::ZERO).into());
            assert_eq!(document.exit(), exit, "ops, {conduct:?}");
            document.ops = None;
            document.mask = Some(MaskReport::of(&benchmark_of(conduct)).into());
            assert_eq!(document.exit(), exit, "mask, {conduct:?}");
        }
    }
}
