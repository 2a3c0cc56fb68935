//! The published membership mask: set always against tested first.

use std::fmt;

use percid_report as html;
use percid_sim::mask::{self, Figures, MaskPolicy, Outcome, Paper, Parameters};
use percid_sim::paper::bounds;
use serde::Serialize;

use crate::sim::bounds::Bounds;
use crate::sim::numbers::{self, Number, figure, hundredths, optional, percent, plain};
use percid_command::table::{Cell, Table};

/// The keys of this part.
#[derive(Debug, Serialize)]
pub(super) struct MaskFigures {
    #[serde(flatten)]
    paper: Paper,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

const TITLE: &str = "Membership mask: Linux commit 8f898fbbe5ee on 60 cores, 120 threads";

impl MaskFigures {
    pub(super) fn simulate(seed: u64) -> MaskFigures {
        let paper = mask::paper(seed);
        let bounds = Bounds::new(bounds::mask(&paper));
        MaskFigures { paper, bounds }
    }

    fn numbers(&self) -> impl Iterator<Item = Number<'_>> {
        self.paper.parameters.iter().map(|parameter| Number {
            name: parameter.name,
            value: format!("{} {}", plain(parameter.value), parameter.unit).trim_end().to_owned(),
            origin: parameter.origin,
            fitted: parameter.fitted,
        })
    }
}

fn published([low, high]: [f64; 2]) -> String {
    if low == high { figure(low) } else { format!("{} to {}", figure(low), figure(high)) }
}

fn policy_name(policy: MaskPolicy) -> &'static str {
    match policy {
        MaskPolicy::SetAlways => "set always",
        MaskPolicy::TestFirst => "test first",
        MaskPolicy::LeaveLazily => "test first, leave lazily",
    }
}

fn ways_table(ways: &[Outcome]) -> Table {
    let columns =
        ["way", "latency of misses", "of all", "scheduler, %", "throughput", "transfers/s"];
    let mut table = Table::new(columns, 1);
    for way in ways {
        table.row([
            policy_name(way.policy).to_owned(),
            optional(way.miss_latency),
            optional(way.latency),
            hundredths(way.scheduler_share),
            figure(way.throughput),
            figure(way.transfers_per_second),
        ]);
    }
    table
}

/// Each figure without the assumption, and in parentheses by how much that differs.
fn figure_cells(figures: &Figures, change: &Figures) -> [String; 5] {
    let both = |value: Option<f64>, change: Option<f64>| match (value, change) {
        (Some(value), Some(change)) => format!("{} ({change:+.1})", figure(value)),
        (value, _) => optional(value),
    };
    [
        both(figures.latency_before, change.latency_before),
        both(figures.latency_after, change.latency_after),
        both(Some(figures.share_before), Some(change.share_before)),
        both(Some(figures.share_after), Some(change.share_after)),
        both(Some(figures.gain), Some(change.gain)),
    ]
}

impl fmt::Display for MaskFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}")?;
        write!(f, "{}", self.table())?;
        self.notes().iter().try_for_each(|note| writeln!(f, "  {note}"))?;
        for (what, ways) in self.runs() {
            write!(f, "\n{what}\n{}", ways_table(ways))?;
        }
        writeln!(f, "\nWithout one assumption, and in parentheses the difference")?;
        writeln!(f, "{}\nNumbers of the model", self.assumptions())?;
        writeln!(f, "{}", numbers::table(self.numbers()))?;
        write!(f, "{}", self.bounds)
    }
}

/// Numbers of CPUs of the plot.
const SWEEP: [u32; 7] = [1, 15, 30, 45, 60, 90, 120];
/// Switches of each CPU in the simulations of the plot.
const SWITCHES: u32 = 300;

impl MaskFigures {
    fn runs(&self) -> [(&'static str, &[Outcome]); 2] {
        [
            ("The published run, and leaving lazily", &self.paper.ways),
            (
                "The same if every tenth switch leads to another process",
                &self.paper.ways_among_processes,
            ),
        ]
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["figure", "when", "published", "simulated", "error"], 2);
        for row in &self.paper.rows {
            table.row([
                Cell::from(row.metric),
                Cell::from(row.when),
                Cell::from(published(row.published)),
                Cell::from(optional(row.model)),
                Cell::judged(percent(row.error_percent), row.within == Some(false)),
            ]);
        }
        table
    }

    fn notes(&self) -> Vec<String> {
        let rows = self.paper.rows.iter().filter(|row| !row.note.is_empty());
        rows.map(|row| format!("{}, {}: {}.", row.metric, row.when, row.note)).collect()
    }

    fn assumptions(&self) -> Table {
        let columns = [
            "assumption",
            "in its place",
            "latency before",
            "after",
            "scheduler before, %",
            "after, %",
            "gain, %",
        ];
        let mut table = Table::new(columns, 2);
        for without in &self.paper.assumptions {
            let names = [without.name, without.what_if].map(str::to_owned).into_iter();
            table.row(names.chain(figure_cells(&without.figures, &without.change)));
        }
        table
    }

    pub(super) fn show_on(&self, page: &mut html::Page, seed: u64) {
        page.section("Membership mask", format!("{TITLE}\n\n{}", self.notes().join("\n\n")));
        self.table().show_on(page);
        page.chart(
            "Latency of the mask's access",
            "Of the accesses that missed the socket's caches.",
            self.bars("cycles", true),
        );
        page.chart("Shares and gains", "", self.bars("percent", false));
        page.chart(
            "Latency of all accesses over CPUs",
            "Where the line does not rest, latency grows with the number of CPUs.",
            sweep(seed),
        );
        for (what, ways) in self.runs() {
            page.section(format!("Membership mask: {}", what.to_lowercase()), "");
            ways_table(ways).show_on(page);
        }
        page.section("Membership mask: without one assumption", "In parentheses: the difference.");
        self.assumptions().show_on(page);
        page.section("Membership mask: numbers of the model", "");
        numbers::table(self.numbers()).show_on(page);
        self.bounds.show_on("Membership mask", page);
    }

    /// The figures in one unit.
    fn bars(&self, unit: &str, logarithmic: bool) -> html::Bars {
        let mut values = html::Axis::new("figure").unit(unit);
        if logarithmic {
            values = values.logarithmic();
        }
        let series = ["published, least", "published, most", "simulated"];
        let mut bars = html::Bars::grouped(html::Axis::new("figure"), values, series);
        for row in self.paper.rows.iter().filter(|row| row.metric.ends_with(unit)) {
            let [low, high] = row.published.map(Some);
            bars.category(format!("{}, {}", row.metric, row.when), [low, high, row.model]);
        }
        bars
    }
}

fn sweep(seed: u64) -> html::Lines {
    let parameters = Parameters { switches_per_cpu: SWITCHES, ..Parameters::default() };
    let latency = html::Axis::new("latency").unit("cycles").logarithmic();
    let mut lines = html::Lines::new(html::Axis::new("CPUs"), latency);
    for policy in MaskPolicy::ALL {
        // The default parameters are simulated by the tests; without points there is no line.
        let outcomes = mask::sweep(&parameters, policy, &SWEEP, seed).unwrap_or_default();
        let points = outcomes.iter().filter_map(|at| Some((f64::from(at.cpus), at.latency?)));
        lines.series(policy_name(policy), points);
    }
    lines
}
