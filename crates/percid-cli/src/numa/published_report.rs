//! A balancer's report as another process has written it, and its shares.

use std::collections::BTreeMap;
use std::time::Duration;

use percid_numa::{AccessMethod, SkipReason};
use serde::{Deserialize, Serialize};

use super::errno;
use super::figures::share;
use super::names;

/// The supported format of reports.
const FORMAT: u32 = 1;

/// The most nodes of Linux (`MAX_NUMNODES`, with the largest `NODES_SHIFT` there is, 10).
const NODES: u32 = 1024;

/// A report; times in nanoseconds.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PublishedReport {
    pub(crate) nodes: Vec<u32>,
    /// The slow nodes that memory is moved to and from.
    #[serde(default)]
    pub(crate) slow_nodes: Vec<u32>,
    pub(crate) sequence: i64,
    pub(crate) passes: u64,
    /// Passes that armed nothing, because the process's mappings could not be read.
    #[serde(default)]
    pub(crate) unreadable_passes: u64,
    pub(crate) period_ns: u64,
    pub(crate) scan_ns: u64,
    pub(crate) move_ns: u64,
    pub(crate) age_ns: u64,
    /// Run time of all threads of the process in that time. Older versions do not report it.
    #[serde(default)]
    pub(crate) run_time_ns: u64,
    pub(crate) threads: u64,
    pub(crate) collisions: u64,
    pub(crate) events_lost: u64,
    #[serde(default)]
    pub(crate) timeline: Vec<PlacementTimeline>,
    pub(crate) regions: Vec<Region>,
}

/// The stages from a change to placed memory: the time of each since the balancer was created; see
/// [`percid_numa::PlacementTimeline`].
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PlacementTimeline {
    pub(crate) began_ns: u64,
    pub(crate) armed_ns: Option<u64>,
    pub(crate) seen_ns: Option<u64>,
    pub(crate) pending_ns: Option<u64>,
    pub(crate) moved_ns: Option<u64>,
    pub(crate) pages: u64,
    pub(crate) batches: u64,
    pub(crate) rearmed: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    #[serde(with = "names::access")]
    pub(crate) access: AccessMethod,
    pub(crate) gone: bool,
    pub(crate) pages_by_node: BTreeMap<u32, u64>,
    pub(crate) absent: u64,
    pub(crate) local: u64,
    pub(crate) remote: u64,
    pub(crate) private: u64,
    pub(crate) shared: u64,
    pub(crate) recent_accesses_by_node: BTreeMap<u32, u64>,
    pub(crate) active: u32,
    pub(crate) scanned: u64,
    #[serde(with = "names::skipped")]
    pub(crate) skipped: BTreeMap<SkipReason, u64>,
    pub(crate) moved: u64,
    /// Pages that went from a node without CPUs to one with CPUs.
    #[serde(default)]
    pub(crate) promoted: u64,
    /// Pages that went to a node without CPUs.
    #[serde(default)]
    pub(crate) demoted: u64,
    pub(crate) pending: u64,
    #[serde(serialize_with = "errno::serialize")]
    pub(crate) failed: BTreeMap<i32, u64>,
    pub(crate) disarmed_whole: u64,
    /// Accesses to armed memory by threads whose node the kernel did not report.
    #[serde(default)]
    pub(crate) unattributed: u64,
    pub(crate) scan_ns: u64,
    pub(crate) move_ns: u64,
}

impl PublishedReport {
    /// Parses the report of a process.
    ///
    /// # Errors
    ///
    /// Returns a description of the fault in the report.
    pub(crate) fn parse(text: &[u8]) -> Result<PublishedReport, String> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        let not_a_report = |error: serde_json::Error| format!("it is not a report: {error}");
        let Form { format } = serde_json::from_slice(text).map_err(not_a_report)?;
        if format != FORMAT {
            return Err(format!("its report has form {format}: expected {FORMAT}"));
        }
        let report: PublishedReport = serde_json::from_slice(text).map_err(not_a_report)?;
        let impossible = report.all_nodes().find(|node| *node >= NODES);
        impossible.map_or(Ok(report), |node| {
            Err(format!("it is not a report: node {node}, expected less than {NODES}"))
        })
    }

    fn all_nodes(&self) -> impl Iterator<Item = u32> {
        let of_regions = self.regions.iter().flat_map(|region| {
            region.pages_by_node.keys().chain(region.recent_accesses_by_node.keys()).copied()
        });
        self.nodes.iter().chain(&self.slow_nodes).copied().chain(of_regions)
    }

    pub(crate) fn age(&self) -> Duration {
        Duration::from_nanos(self.age_ns)
    }

    pub(crate) fn scan_share(&self) -> Option<f64> {
        share(self.scan_ns, self.run_time_ns)
    }

    pub(crate) fn move_share(&self) -> Option<f64> {
        share(self.move_ns, self.age_ns)
    }
}

impl Region {
    pub(crate) fn local_share(&self) -> Option<f64> {
        share(self.local, self.local.saturating_add(self.remote))
    }

    pub(crate) fn private_share(&self) -> Option<f64> {
        share(self.private, self.private.saturating_add(self.shared))
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages_by_node.values().fold(0, |sum, pages| sum.saturating_add(*pages))
    }

    pub(crate) fn skipped_for(&self, reason: SkipReason) -> u64 {
        self.skipped.get(&reason).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = r#"{"format":1,"nodes":[0],"sequence":0,"passes":0,"period_ns":1,"scan_ns":0,
        "move_ns":0,"age_ns":0,"threads":1,"collisions":0,"events_lost":0,"regions":[]}"#;

    #[test]
    fn what_is_no_report_is_refused() {
        let report = PublishedReport::parse(EMPTY.as_bytes()).expect("a report");
        assert_eq!(report.scan_share(), None);
        let cases = [
            ("", "not a report"),
            ("{}", "missing field `format`"),
            ("[1]", "not a report"),
            ("{\"format\":2}", "form 2: expected 1"),
            ("{\"format\":1}", "missing field"),
            ("\u{0}", "not a report"),
        ];
        for (text, why) in cases {
            let error = PublishedReport::parse(text.as_bytes()).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        let deep = "[".repeat(1 << 20);
        assert!(PublishedReport::parse(deep.as_bytes()).is_err());
        let far = EMPTY.replace("[0]", "[1024]");
        assert!(PublishedReport::parse(far.as_bytes()).expect_err("a node").contains("node 1024"));
        for place in 0..EMPTY.len() {
            assert!(PublishedReport::parse(&EMPTY.as_bytes()[..place]).is_err(), "{place}");
        }
    }
}
