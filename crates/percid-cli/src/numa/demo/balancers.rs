//! Results of the balancers in the balanced runs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use percid_numa::{RegionReport, Report};
use serde::Serialize;

use crate::numa::errno;
use crate::numa::figures::{counts, percent, share};

/// The report of one run: pages, accesses, and shares of the balancer's age.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct BalancerReport {
    local_share: Option<f64>,
    local: u64,
    remote: u64,
    scanned: u64,
    moved: u64,
    pending: u64,
    #[serde(serialize_with = "errno::serialize")]
    failed: BTreeMap<i32, u64>,
    passes: u64,
    sequence: i64,
    scan_share: f64,
    move_share: f64,
    skipped: BTreeMap<&'static str, u64>,
}

impl BalancerReport {
    /// Returns the values of the only region.
    pub(super) fn new(report: &Report) -> Option<BalancerReport> {
        let region: &RegionReport = report.regions.first()?;
        let of_age = |time: Duration| time.as_secs_f64() / report.age.as_secs_f64();
        Some(BalancerReport {
            local_share: region.local_share(),
            local: region.local,
            remote: region.remote,
            scanned: region.scanned,
            moved: region.moved,
            pending: region.pending,
            failed: region.failed.iter().copied().collect(),
            passes: report.passes,
            sequence: report.sequence,
            scan_share: of_age(report.scan_time),
            move_share: of_age(report.move_time),
            skipped: region.skipped.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
        })
    }
}

/// The reports of several runs as text: sums of counts, means of shares.
pub(super) struct Balancers<'a>(pub(super) Vec<&'a BalancerReport>);

impl Balancers<'_> {
    fn sum(&self, count: impl Fn(&BalancerReport) -> u64) -> u64 {
        self.0.iter().map(|one| count(one)).sum()
    }

    fn mean(&self, share: impl Fn(&BalancerReport) -> f64) -> f64 {
        self.0.iter().map(|one| share(one)).sum::<f64>() / self.0.len() as f64
    }

    fn by_name<K: Copy + Ord>(
        &self,
        counts: impl Fn(&BalancerReport) -> &BTreeMap<K, u64>,
    ) -> BTreeMap<K, u64> {
        let mut sums = BTreeMap::new();
        for (name, count) in self.0.iter().flat_map(|one| counts(one)) {
            *sums.entry(*name).or_insert(0) += count;
        }
        sums
    }
}

impl fmt::Display for Balancers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let whose = match self.0.len() {
            1 => "balancer".to_owned(),
            runs => format!("balancers of {runs} runs"),
        };
        let failed = self.by_name(|one| &one.failed);
        let local = self.sum(|one| one.local);
        writeln!(
            f,
            "{whose}: {} passes; {} pages scanned, {} moved, {} pending, failed {}",
            self.sum(|one| one.passes),
            self.sum(|one| one.scanned),
            self.sum(|one| one.moved),
            self.sum(|one| one.pending),
            counts(failed.into_iter().map(|(number, pages)| (errno::name(number), pages)))
        )?;
        writeln!(
            f,
            "  local {} % of the accesses seen; scanning took {} % of the time, moving {} %",
            percent(share(local, local + self.sum(|one| one.remote))),
            percent(Some(self.mean(|one| one.scan_share))),
            percent(Some(self.mean(|one| one.move_share)))
        )?;
        writeln!(f, "  skipped: {}", counts(self.by_name(|one| &one.skipped)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_shares_are_not() {
        let one = |local, scan_share, failed| BalancerReport {
            local,
            remote: 10,
            scanned: 50,
            moved: 20,
            passes: 3,
            scan_share,
            failed: BTreeMap::from([(failed, 2), (libc::ENOMEM, 1)]),
            skipped: BTreeMap::from([("scan_delay", 4), ("unsuitable", 0)]),
            ..BalancerReport::default()
        };
        let (a, b) = (one(20, 0.01, libc::EBUSY), one(0, 0.03, libc::EPERM));
        let text = Balancers(vec![&a, &b]).to_string();
        for part in [
            "of 2 runs: 6 passes; 100 pages scanned, 40 moved",
            "EBUSY 2",
            "EPERM 2",
            "ENOMEM 2",
            "local 50.0 %",
            "scanning took 2.0 %",
            "skipped: scan_delay 8\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(Balancers(Vec::new()).to_string(), "");
    }
}
