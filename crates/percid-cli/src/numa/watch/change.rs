//! The work of a balancer between two reports.

use std::collections::BTreeMap;

use percid_numa::{AccessMethod, SkipReason};
use serde::Serialize;

use crate::numa::errno;
use crate::numa::figures::share;
use crate::numa::names;
use crate::numa::published_report::{PublishedReport, Region};

/// The change of a balancer. Counts are those of the interval; times in nanoseconds.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    pub(super) number: usize,
    pub(super) nodes: Vec<u32>,
    /// Length of the interval by the balancer's own clock.
    pub(super) interval_ns: u64,
    pub(super) passes: u64,
    /// Current values.
    sequence: i64,
    period_ns: u64,
    scan_ns: u64,
    move_ns: u64,
    #[serde(flatten)]
    pub(super) total: IntervalCounts,
    regions: Vec<RegionChange>,
}

/// The change of a region.
#[derive(Debug, Serialize)]
struct RegionChange {
    start: u64,
    end: u64,
    #[serde(with = "names::access")]
    access: AccessMethod,
    gone: bool,
    #[serde(flatten)]
    counts: IntervalCounts,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct IntervalCounts {
    pub(super) scanned: u64,
    pub(super) moved: u64,
    /// Current value.
    pub(super) pending: u64,
    local: u64,
    remote: u64,
    private: u64,
    shared: u64,
    /// Current values.
    pages_by_node: BTreeMap<u32, u64>,
    #[serde(with = "names::skipped")]
    pub(super) skipped: BTreeMap<SkipReason, u64>,
    #[serde(serialize_with = "errno::serialize")]
    failed: BTreeMap<i32, u64>,
}

impl Change {
    pub(super) fn between(
        number: usize,
        before: &PublishedReport,
        now: &PublishedReport,
    ) -> Change {
        let regions: Vec<RegionChange> = now
            .regions
            .iter()
            .map(|region| {
                let same = |other: &&Region| (other.start, other.end) == (region.start, region.end);
                RegionChange::between(before.regions.iter().find(same), region)
            })
            .collect();
        let mut total = IntervalCounts::default();
        regions.iter().for_each(|region| total.add(&region.counts));
        Change {
            number,
            nodes: now.nodes.clone(),
            interval_ns: since(now.age_ns, before.age_ns),
            passes: since(now.passes, before.passes),
            sequence: now.sequence,
            period_ns: now.period_ns,
            scan_ns: since(now.scan_ns, before.scan_ns),
            move_ns: since(now.move_ns, before.move_ns),
            total,
            regions,
        }
    }

    /// Converts a count of the interval to a count per second.
    pub(super) fn per_second(&self, count: u64) -> Option<f64> {
        share(count, self.interval_ns).map(|rate| rate * 1e9)
    }
}

/// Returns the increase since the last report. A region that was registered anew counts from zero.
fn since(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

impl RegionChange {
    fn between(before: Option<&Region>, now: &Region) -> RegionChange {
        let of = |count: fn(&Region) -> u64| since(count(now), before.map_or(0, count));
        let counts = IntervalCounts {
            scanned: of(|region| region.scanned),
            moved: of(|region| region.moved),
            pending: now.pending,
            local: of(|region| region.local),
            remote: of(|region| region.remote),
            private: of(|region| region.private),
            shared: of(|region| region.shared),
            pages_by_node: now.pages_by_node.clone(),
            skipped: each_since(&now.skipped, before.map(|before| &before.skipped)),
            failed: each_since(&now.failed, before.map(|before| &before.failed)),
        };
        let Region { start, end, access, gone, .. } = *now;
        RegionChange { start, end, access, gone, counts }
    }
}

fn each_since<K: Ord + Copy>(
    now: &BTreeMap<K, u64>,
    before: Option<&BTreeMap<K, u64>>,
) -> BTreeMap<K, u64> {
    let earlier = |key| before.and_then(|before| before.get(key)).copied().unwrap_or(0);
    now.iter().map(|(key, count)| (*key, since(*count, earlier(key)))).collect()
}

impl IntervalCounts {
    fn add(&mut self, other: &IntervalCounts) {
        let pairs = [
            (&mut self.scanned, other.scanned),
            (&mut self.moved, other.moved),
            (&mut self.pending, other.pending),
            (&mut self.local, other.local),
            (&mut self.remote, other.remote),
            (&mut self.private, other.private),
            (&mut self.shared, other.shared),
        ];
        pairs.into_iter().for_each(|(sum, count)| *sum = sum.saturating_add(count));
        add_each(&mut self.pages_by_node, &other.pages_by_node);
        add_each(&mut self.skipped, &other.skipped);
        add_each(&mut self.failed, &other.failed);
    }

    pub(super) fn local_share(&self) -> Option<f64> {
        share(self.local, self.local.saturating_add(self.remote))
    }

    /// Returns the share of the pages that are on a node.
    pub(super) fn share_on(&self, node: u32) -> Option<f64> {
        let all = self.pages_by_node.values().fold(0u64, |sum, pages| sum.saturating_add(*pages));
        share(self.pages_by_node.get(&node).copied().unwrap_or(0), all)
    }
}

fn add_each<K: Ord + Copy>(sums: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (key, count) in counts {
        let sum = sums.entry(*key).or_insert(0);
        *sum = sum.saturating_add(*count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(age_ns: u64, moved: [u64; 2], local: u64, inactive: u64) -> PublishedReport {
        let region = |start: u64, moved: u64| {
            format!(
                r#"{{"start":{start},"end":9000000,"access":"trapped","gone":false,"pages_by_node":{{"0":1,"1":3}},
                "absent":0,"local":{local},"remote":4,"private":0,"shared":0,"recent_accesses_by_node":{{}},"active":0,
                "scanned":0,"skipped":{{"pid_inactive":{inactive}}},"moved":{moved},"pending":2,
                "failed":{{"16":{moved}}},"disarmed_whole":0,"scan_ns":0,"move_ns":0}}"#
            )
        };
        let regions = [region(4096, moved[0]), region(8192, moved[1])].join(",");
        let text = format!(
            r#"{{"format":1,"nodes":[0,1],"sequence":0,"passes":{age_ns},"period_ns":1,"scan_ns":0,"move_ns":0,
            "age_ns":{age_ns},"threads":1,"collisions":0,"events_lost":0,"regions":[{regions}]}}"#
        );
        PublishedReport::parse(text.as_bytes()).expect("a report")
    }

    #[test]
    fn counts_are_those_of_the_interval() {
        let before = report(1_000_000_000, [10, 50], 4, 1);
        let change = Change::between(1, &before, &report(3_000_000_000, [40, 20], 16, 3));
        // The second region was registered anew.
        assert_eq!(change.total.moved, 30 + 20);
        assert_eq!(change.per_second(change.total.moved), Some(25.0));
        assert_eq!(change.total.skipped, [(SkipReason::PidInactive, 4)].into());
        assert_eq!(change.total.pending, 4);
        assert_eq!(change.total.local_share(), Some(1.0), "nothing remote in the interval");
        assert_eq!(change.total.share_on(1), Some(0.75));
        assert_eq!(change.total.failed, [(16, 50)].into());
    }

    #[test]
    fn numbers_that_make_no_sense_are_no_panic() {
        let most = report(u64::MAX, [u64::MAX; 2], u64::MAX, u64::MAX);
        let change = Change::between(1, &report(0, [0; 2], 0, 0), &most);
        assert_eq!(change.total.moved, u64::MAX);
        let change = Change::between(1, &most, &report(0, [0; 2], 0, 0));
        assert_eq!((change.total.moved, change.per_second(1)), (0, None));
    }
}
