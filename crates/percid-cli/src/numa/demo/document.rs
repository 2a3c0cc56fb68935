//! The results of a demonstration: the JSON document and the text.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use percid_numa::Settings;
use serde::Serialize;

use super::balancers::{BalancerReport, Balancers};
use super::comparison::{Comparison, Ends};
use super::plan::Plan;
use super::workload::{Course, Placement};
use crate::busy::Noise;
use crate::cli::RulesChoice;
use crate::judged::Circumstances;
use crate::numa::figures::{percent, share};
use crate::numa::nodes::KernelBalancing;
use percid_command::report;
use percid_command::text_table::{Align, TextTable};
use percid_report::{Axis, Dot, Dots, Page};

/// The most nodes that have columns; the JSON has all.
const NODES_SHOWN: usize = 8;

/// The document of `percid numa demo --json`. The text is what follows the heading.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    threads: usize,
    memory: usize,
    nodes: Vec<u32>,
    first_node: u32,
    /// Number of requested pairs.
    pairs: usize,
    seconds: f64,
    rules: RulesChoice,
    access: String,
    settings: SettingsReport,
    kernel_balancing: KernelBalancing,
    /// Runs of finished pairs, in the order in which they ran.
    runs: Vec<RunReport>,
    comparison: Comparison,
    interrupted: bool,
    /// The largest noise of all runs.
    noise: Option<Noise>,
    /// The beginning of a run did not end in time.
    pub(super) partial: bool,
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
    /// Number of the pair, from 1.
    pair: usize,
    balanced: bool,
    bytes_per_second_first: Option<f64>,
    bytes_per_second_last: Option<f64>,
    placed_before: Option<f64>,
    placed_after: Option<f64>,
    pages_before: BTreeMap<u32, u64>,
    pages_after: BTreeMap<u32, u64>,
    balancer: Option<BalancerReport>,
    /// The load of other processes, if times are noise; they are `null` then.
    noise: Option<Noise>,
}

impl Document {
    pub(super) fn new(
        plan: &Plan,
        kernel: KernelBalancing,
        pairs: Vec<[RunReport; 2]>,
        interrupted: bool,
        partial: bool,
    ) -> Document {
        let noise = pairs.iter().flatten().filter_map(|run| run.noise);
        let noise = noise.max_by_key(|noise| noise.runnable_threads);
        let ends: Vec<Ends> = pairs.iter().map(ends).collect();
        Document {
            threads: plan.places.len(),
            memory: plan.bytes(),
            nodes: plan.nodes.clone(),
            first_node: plan.first_node,
            pairs: plan.pairs,
            seconds: plan.length.as_secs_f64(),
            rules: plan.rules,
            access: plan.access.to_string(),
            settings: SettingsReport::new(&plan.settings),
            kernel_balancing: kernel,
            comparison: Comparison::new(&ends, plan.has_nodes(), kernel.is_on()),
            runs: pairs.into_iter().flatten().collect(),
            interrupted,
            noise,
            partial,
        }
    }
}

/// Returns the values at the end of a pair, independently of the order of its runs.
fn ends(pair: &[RunReport; 2]) -> Ends {
    let [without, with] = match pair {
        [first, second] if first.balanced => [second, first],
        [first, second] => [first, second],
    };
    Ends {
        throughput_without: without.bytes_per_second_last,
        throughput_with: with.bytes_per_second_last,
        placed_without: without.placed_after,
        placed_with: with.placed_after,
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
    pub(super) fn new(plan: &Plan, pair: usize, course: &Course) -> RunReport {
        let window = Duration::from_secs(1).min(plan.length / 4);
        let end = course.written.last().map_or(Duration::ZERO, |(time, _)| *time);
        let hiding = Circumstances { noise: course.noise, partial: false }.hiding();
        let rate = |from, to| match hiding {
            Some(_) => None,
            None => rate(&course.written, from, to),
        };
        let placed =
            |placement: &Placement| share(placement.placed, placement.by_node.values().sum());
        RunReport {
            pair,
            balanced: course.report.is_some(),
            bytes_per_second_first: rate(Duration::ZERO, window),
            bytes_per_second_last: rate(end.saturating_sub(window), end),
            noise: course.noise,
            placed_before: placed(&course.before),
            placed_after: placed(&course.after),
            pages_before: course.before.by_node.clone(),
            pages_after: course.after.by_node.clone(),
            balancer: course.report.as_ref().and_then(BalancerReport::new),
        }
    }
}

/// Returns bytes per second between two times, from the first samples at or after them; `None` if
/// there is only one.
fn rate(written: &[(Duration, u64)], from: Duration, to: Duration) -> Option<f64> {
    let after = |time| written.iter().find(|(at, _)| *at >= time).or(written.last());
    let ((start, before), (end, now)) = after(from).zip(after(to))?;
    let seconds = (*end - *start).as_secs_f64();
    (seconds > 0.0).then(|| (now - before) as f64 / seconds)
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.runs.is_empty() {
            writeln!(f, "\n{}", self.table())?;
        }
        if let Some(noise) = self.noise {
            writeln!(f, "{noise}")?;
        }
        if self.partial {
            writeln!(f, "partial: the memory was not written to in time")?;
        }
        write!(f, "{}", self.comparison)?;
        let balancers = self.runs.iter().filter_map(|run| run.balancer.as_ref());
        write!(f, "{}", Balancers(balancers.collect()))
    }
}

impl Document {
    /// Returns the report; `what` describes the runs.
    pub(super) fn page(&self, what: &str) -> Page {
        let verdict = self.comparison.told();
        let mut page = report::page("percid numa demo", verdict, what, self.interrupted);
        let rate = Axis::new("throughput at the end").unit("GB/s");
        let series = ["without balancing", "with balancing"];
        let mut dots = Dots::new(Axis::new("pair"), rate, series).reference().notes(series);
        for pair in self.runs.chunk_by(|one, other| one.pair == other.pair) {
            let of = |balanced: bool| {
                let run = pair.iter().find(|run| run.balanced == balanced)?;
                run.bytes_per_second_last.map(|bytes| bytes / 1e9)
            };
            let rates = [of(false), of(true)];
            let note = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.2}"));
            let dot = rates.iter().fold(Dot::new(rates), |dot, rate| dot.note(note(*rate)));
            dots.row(format!("pair {}", pair[0].pair), [dot]);
        }
        page.chart("Throughput of each pair", "More is better.", dots);
        page.section("All that was found", "").printed(self.to_string().trim_matches('\n'));
        page
    }

    fn table(&self) -> TextTable {
        let right = Align::Right;
        let mut table = TextTable::new([("pair", right), ("balancing", Align::Left)]);
        table.group("GB/s".to_owned(), ["first", "last"].map(|name| (name, right)));
        table.group("placed %".to_owned(), ["before", "after"].map(|name| (name, right)));
        let nodes: Vec<u32> = self.nodes.iter().take(NODES_SHOWN).copied().collect();
        let columns = nodes.iter().map(|node| (format!("node {node}"), right));
        table.group("pages after".to_owned(), columns);
        for run in &self.runs {
            table.row(row(run, &nodes));
        }
        table
    }
}

fn row(run: &RunReport, nodes: &[u32]) -> Vec<String> {
    let rate = |bytes: Option<f64>| match bytes {
        Some(bytes) => format!("{:.2}", bytes / 1e9),
        None => "-".to_owned(),
    };
    let mut row = vec![run.pair.to_string(), if run.balanced { "yes" } else { "no" }.to_owned()];
    row.extend([run.bytes_per_second_first, run.bytes_per_second_last].map(rate));
    row.extend([run.placed_before, run.placed_after].map(percent));
    row.extend(
        nodes.iter().map(|node| run.pages_after.get(node).copied().unwrap_or(0).to_string()),
    );
    row
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

    #[test]
    fn a_pair_is_compared_the_same_way_whichever_run_came_first() {
        let run = |balanced, rate| RunReport {
            pair: 1,
            balanced,
            bytes_per_second_first: None,
            bytes_per_second_last: Some(rate),
            placed_before: None,
            placed_after: Some(if balanced { 1.0 } else { 0.5 }),
            pages_before: BTreeMap::new(),
            pages_after: BTreeMap::new(),
            balancer: None,
            noise: None,
        };
        for pair in [[run(false, 2.0), run(true, 3.0)], [run(true, 3.0), run(false, 2.0)]] {
            let ends = ends(&pair);
            assert_eq!((ends.throughput_without, ends.throughput_with), (Some(2.0), Some(3.0)));
            assert_eq!((ends.placed_without, ends.placed_with), (Some(0.5), Some(1.0)));
        }
    }
}
