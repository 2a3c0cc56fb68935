//! The results of a demonstration: the JSON document and the text.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use percid_numa::{RegionReport, Report, Settings};
use serde::Serialize;

use super::plan::Plan;
use super::workload::{Course, Placement};
use crate::cli::RulesChoice;
use crate::numa::errno;
use crate::numa::figures::{counts, mebibytes, percent, share};
use crate::numa::nodes::KernelBalancing;
use percid_command::text_table::{Align, TextTable};

/// The most nodes that have columns; the JSON has all.
const NODES_SHOWN: usize = 8;

/// The document of `percid numa demo --json`.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    threads: usize,
    memory: usize,
    nodes: Vec<u32>,
    first_node: u32,
    seconds: f64,
    rules: RulesChoice,
    access: String,
    settings: SettingsReport,
    kernel_balancing: KernelBalancing,
    runs: Vec<RunReport>,
    /// The throughput at the end with balancing, in multiples of that without.
    gain: Option<f64>,
    interrupted: bool,
}

/// Sizes in bytes, rates in bytes per second.
#[derive(Debug, Serialize)]
struct SettingsReport {
    scan_delay_ms: f64,
    scan_size: u64,
    period_min_ms: f64,
    period_max_ms: f64,
    max_rate: u64,
    batch: u64,
    bandwidth: u64,
    backoff: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct RunReport {
    balanced: bool,
    bytes_per_second_first: Option<f64>,
    bytes_per_second_last: Option<f64>,
    placed_before: Option<f64>,
    placed_after: Option<f64>,
    pages_before: BTreeMap<u32, u64>,
    pages_after: BTreeMap<u32, u64>,
    balancer: Option<BalancerReport>,
}

/// Pages, and shares of the balancer's age.
#[derive(Debug, Serialize)]
struct BalancerReport {
    local_share: Option<f64>,
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

impl Document {
    pub(super) fn new(plan: &Plan, runs: Vec<RunReport>, interrupted: bool) -> Document {
        let last = |balanced| {
            let run = runs.iter().find(|run| run.balanced == balanced)?;
            run.bytes_per_second_last.filter(|rate| *rate > 0.0)
        };
        Document {
            threads: plan.places.len(),
            memory: plan.bytes(),
            nodes: plan.nodes.clone(),
            first_node: plan.first_node,
            seconds: plan.length.as_secs_f64(),
            rules: plan.rules,
            access: plan.access.to_string(),
            settings: SettingsReport::new(&plan.settings),
            kernel_balancing: KernelBalancing::read(),
            gain: last(true).zip(last(false)).map(|(with, without)| with / without),
            runs,
            interrupted,
        }
    }
}

impl SettingsReport {
    fn new(settings: &Settings) -> SettingsReport {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        SettingsReport {
            scan_delay_ms: ms(settings.scan_delay),
            scan_size: settings.scan_size,
            period_min_ms: ms(settings.period_min),
            period_max_ms: ms(settings.period_max),
            max_rate: settings.max_rate,
            batch: settings.batch,
            bandwidth: settings.bandwidth,
            backoff: settings.backoff,
        }
    }
}

impl RunReport {
    pub(super) fn new(plan: &Plan, course: &Course) -> RunReport {
        let window = Duration::from_secs(1).min(plan.length / 4);
        let end = course.written.last().map_or(Duration::ZERO, |(time, _)| *time);
        let placed =
            |placement: &Placement| share(placement.placed, placement.by_node.values().sum());
        RunReport {
            balanced: course.report.is_some(),
            bytes_per_second_first: rate(&course.written, Duration::ZERO, window),
            bytes_per_second_last: rate(&course.written, end.saturating_sub(window), end),
            placed_before: placed(&course.before),
            placed_after: placed(&course.after),
            pages_before: course.before.by_node.clone(),
            pages_after: course.after.by_node.clone(),
            balancer: course.report.as_ref().and_then(BalancerReport::new),
        }
    }
}

/// Returns bytes per second between two times, by the samples next after them; `None` if there is
/// only one.
fn rate(written: &[(Duration, u64)], from: Duration, to: Duration) -> Option<f64> {
    let after = |time| written.iter().find(|(at, _)| *at >= time).or(written.last());
    let ((start, before), (end, now)) = after(from).zip(after(to))?;
    let seconds = (*end - *start).as_secs_f64();
    (seconds > 0.0).then(|| (now - before) as f64 / seconds)
}

impl BalancerReport {
    /// There is one region.
    fn new(report: &Report) -> Option<BalancerReport> {
        let region: &RegionReport = report.regions.first()?;
        let of_age = |time: Duration| time.as_secs_f64() / report.age.as_secs_f64();
        Some(BalancerReport {
            local_share: region.local_share(),
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

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        writeln!(
            f,
            "NUMA01_THREADLOCAL, scaled: {} threads, {} MiB first written on node {}, {} s a run",
            self.threads,
            mebibytes(self.memory as u64),
            self.first_node,
            self.seconds
        )?;
        writeln!(
            f,
            "rules {}, access {}; scan delay {} ms, scan size {} MiB, period {} to {} ms",
            self.rules.name(),
            self.access,
            settings.scan_delay_ms,
            mebibytes(settings.scan_size),
            settings.period_min_ms,
            settings.period_max_ms
        )?;
        if self.kernel_balancing.is_on() {
            writeln!(f, "the kernel's own balancing is on: it moves pages in both runs")?;
        }
        if self.nodes.len() < 2 {
            writeln!(
                f,
                "one node has memory: nothing is armed, nothing moves, and balancing costs nothing"
            )?;
        }
        write!(f, "\n{}", self.table())?;
        if let Some(gain) = self.gain {
            let what = match self.nodes.len() {
                0 | 1 => "which is by how much two equal runs differ",
                _ => "with balancing, as a multiple of that without",
            };
            writeln!(f, "gain: {gain:.2} times the throughput at the end, {what}")?;
        }
        self.runs.iter().filter_map(|run| run.balancer.as_ref()).try_for_each(|run| run.fmt(f))
    }
}

impl Document {
    fn table(&self) -> TextTable {
        let right = Align::Right;
        let mut table = TextTable::new([("balancing", Align::Left)]);
        table.group("GB/s".to_owned(), ["first", "last"].map(|name| (name, right)));
        table.group("placed %".to_owned(), ["before", "after"].map(|name| (name, right)));
        let nodes: Vec<u32> = self.nodes.iter().take(NODES_SHOWN).copied().collect();
        let columns = nodes.iter().map(|node| (format!("node {node}"), right));
        table.group("pages after".to_owned(), columns);
        for run in &self.runs {
            let rate = |bytes: Option<f64>| match bytes {
                Some(bytes) => format!("{:.2}", bytes / 1e9),
                None => "-".to_owned(),
            };
            let mut row = vec![if run.balanced { "yes" } else { "no" }.to_owned()];
            row.extend([run.bytes_per_second_first, run.bytes_per_second_last].map(rate));
            row.extend([run.placed_before, run.placed_after].map(percent));
            let pages = |node| run.pages_after.get(node).copied().unwrap_or(0).to_string();
            row.extend(nodes.iter().map(pages));
            table.row(row);
        }
        table
    }
}

impl fmt::Display for BalancerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "balancer: {} passes in {} sequences; {} pages scanned, {} moved, {} pending, failed {}",
            self.passes,
            self.sequence,
            self.scanned,
            self.moved,
            self.pending,
            counts(self.failed.iter().map(|(number, pages)| (errno::name(*number), *pages)))
        )?;
        writeln!(
            f,
            "  local {} % of the accesses seen; scanning took {} % of the time, moving {} %",
            percent(self.local_share),
            percent(Some(self.scan_share)),
            percent(Some(self.move_share))
        )?;
        writeln!(
            f,
            "  skipped: {}",
            counts(self.skipped.iter().map(|(name, count)| (name, *count)))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_their_window() {
        let at = |ms, bytes| (Duration::from_millis(ms), bytes);
        let written = [at(0, 0), at(500, 100), at(1000, 200), at(1500, 1200)];
        let between =
            |from, to| rate(&written, Duration::from_millis(from), Duration::from_millis(to));
        assert_eq!(between(0, 1000), Some(200.0));
        assert_eq!(between(1000, 1500), Some(2000.0));
        assert_eq!(between(1500, 9000), None);
        assert_eq!(rate(&written[..1], Duration::ZERO, Duration::ZERO), None);
        assert_eq!(rate(&[], Duration::ZERO, Duration::ZERO), None);
    }
}
