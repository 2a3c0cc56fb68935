//! The published membership mask: setting the bit always, compared to testing it first.

use std::fmt;

use percid_report as html;
use percid_sim::mask::{self, MaskPolicy, Outcome, Paper, PaperFigures, Parameters};
use percid_sim::paper::bounds;
use percid_sim::paper::leave_one_out::LeaveOneOut;
use percid_sim::run_control::RunControl;
use serde::Serialize;

use super::left_out;
use crate::sim::bounds::Bounds;
use crate::sim::errors;
use crate::sim::numbers::{self, Number, figure, hundredths, optional, percent};
use crate::sim::span;
use percid_command::table::{Cell, Table};

/// The keys of this part in the JSON document.
#[derive(Debug, Serialize)]
pub(super) struct MaskFigures {
    #[serde(flatten)]
    paper: Paper,
    #[serde(skip_serializing_if = "Option::is_none")]
    leave_one_out: Option<LeaveOneOut>,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

const TITLE: &str = "Membership mask: Linux commit 8f898fbbe5ee on 60 cores, 120 threads";

/// The origins of the values.
const ORIGINS: &str = "published: measured by others. simulated and its error: fitted where the note says so; else \
                       forecast, from the same numbers. The runs and assumptions below are \
                       forecasts: nobody has published them.";

impl MaskFigures {
    pub(super) fn simulate(seed: u64) -> MaskFigures {
        let paper = mask::paper(seed);
        let bounds = Bounds::new(bounds::mask(&paper));
        MaskFigures { paper, leave_one_out: None, bounds }
    }

    /// Adds the predictions of values by fits without them, unless that is stopped.
    pub(super) fn cross_validate(self, progress: &RunControl) -> MaskFigures {
        let leave_one_out = mask::left_out(self.paper.seed, progress);
        MaskFigures { leave_one_out, ..self }
    }

    fn numbers(&self) -> impl Iterator<Item = Number<'_>> {
        self.paper.parameters.iter().map(Number::from)
    }
}

fn published([low, high]: [f64; 2]) -> String {
    if low == high { figure(low) } else { format!("{} to {}", figure(low), figure(high)) }
}

fn ways_table(ways: &[Outcome]) -> Table {
    let columns = [
        "policy",
        "latency of misses",
        "of all",
        "to another space",
        "scheduler, %",
        "throughput",
        "transfers/s",
        "page tables loaded",
        "needless interrupts",
    ];
    let mut table = Table::new(columns, 1);
    for way in ways {
        table.row([
            way.policy.clone(),
            optional(way.miss_latency),
            optional(way.latency),
            optional(way.across_latency),
            hundredths(way.scheduler_share),
            figure(way.throughput),
            figure(way.transfers_per_second),
            way.reloads.to_string(),
            way.needless_interrupts.to_string(),
        ]);
    }
    table
}

/// Returns each value without the assumption, and in parentheses the difference.
fn figure_cells(figures: &PaperFigures, change: &PaperFigures) -> [String; 5] {
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
        writeln!(f, "  {}", self.result())?;
        if let Some(found) = &self.leave_one_out {
            writeln!(f, "{}", left_out::text(found))?;
        }
        writeln!(f, "  {ORIGINS}")?;
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
/// Turns for each CPU in the simulations of the plot.
const TURNS: u32 = 300;

impl MaskFigures {
    fn runs(&self) -> [(&'static str, &[Outcome]); 2] {
        [
            ("The published run under all policies", &self.paper.ways),
            (
                "The same with two processes, where every tenth switch leads to the other one",
                &self.paper.ways_among_processes,
            ),
        ]
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["figure", "when", "published", "simulated", "error"], 2);
        for row in &self.paper.rows {
            table.row(figure_row(row));
        }
        table
    }

    /// Returns the same with the notes.
    fn noted_table(&self) -> Table {
        let columns = ["figure", "when", "published", "simulated", "error", "note"];
        let mut table = Table::new(columns, 2).ending_in_texts(1);
        for row in &self.paper.rows {
            table.row(figure_row(row).into_iter().chain([Cell::from(row.note)]));
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
        let text = format!("{}\n\n{TITLE}.\n\n{ORIGINS}", self.result());
        page.section("Membership mask", text);
        if let Some(found) = &self.leave_one_out {
            left_out::show_on(found, page);
        }
        page.chart(
            "Latency of the mask's access",
            "Accesses that missed the socket's caches.",
            self.dots("cycles", true),
        );
        page.chart("Shares and gains", "", self.dots("percent", false));
        page.chart(
            "Latency of all accesses over CPUs",
            "If the line does not rest, latency grows with the number of CPUs.",
            sweep(seed),
        );
        self.noted_table().show_as("All figures, and what to know of them", page);
        for (what, ways) in self.runs() {
            page.subsection(what, throughputs(ways));
            ways_table(ways).show_on(page);
        }
        let text = format!("{}\n\nIn parentheses: the difference.", self.most_important());
        page.subsection("Without one assumption", text);
        self.assumptions().show_as("Assumptions", page);
        page.subsection("Numbers of the model", numbers::sentence(self.numbers()));
        numbers::table(self.numbers()).show_as("Numbers, and where they come from", page);
        self.bounds.show_on(page);
    }

    /// Returns the errors in one sentence.
    pub(super) fn result(&self) -> String {
        let rows = self.paper.rows.iter().filter(|row| row.kind.counts());
        let error = rows.filter_map(|row| Some((row_name(row), row.error_percent?)));
        errors::sentence("figures", error)
    }

    /// Returns the assumption whose absence changes the gain most.
    fn most_important(&self) -> String {
        let changed = self.paper.assumptions.iter();
        let most =
            changed.max_by(|one, other| one.change.gain.abs().total_cmp(&other.change.gain.abs()));
        most.map_or(String::new(), |without| {
            format!(
                "The gain depends most on this one: {}. Without it the gain is {} % ({:+.1}).",
                without.name,
                figure(without.figures.gain),
                without.change.gain
            )
        })
    }

    /// Returns the values in one unit.
    fn dots(&self, unit: &str, logarithmic: bool) -> html::Dots {
        let mut values = html::Axis::new("figure").unit(unit);
        if logarithmic {
            values = values.logarithmic();
        }
        let series = ["published", "simulated"];
        let notes = ["published", "simulated", "error"];
        let dots = html::Dots::new(html::Axis::new("figure"), values, series);
        let mut dots = dots.reference().notes(notes);
        for row in self.paper.rows.iter().filter(|row| row.metric.ends_with(unit)) {
            let [low, high] = row.published;
            let dot = if low == high {
                html::Dot::new([Some(low), row.model])
            } else {
                html::Dot::new([None, row.model]).range(low, high)
            };
            let error = percent(row.error_percent);
            let is_outside = row.within == Some(false);
            let error = if is_outside { html::Cell::outside(error) } else { error.into() };
            let dot = dot.note(published(row.published)).note(optional(row.model)).note(error);
            dots.row(row_name(row), [dot]);
        }
        dots
    }
}

fn figure_row(row: &mask::PublishedRow) -> [Cell; 5] {
    [
        Cell::from(row.metric),
        Cell::from(row.when),
        Cell::from(published(row.published)),
        Cell::from(optional(row.model)),
        Cell::judged(percent(row.error_percent), row.within == Some(false)),
    ]
}

/// Returns the smallest and the largest throughput, and their policies.
fn throughputs(ways: &[Outcome]) -> String {
    let figures = ways.iter().map(|way| (way.policy.clone(), way.throughput));
    span::sentence("Throughput", " CPUs", figures).unwrap_or_default()
}

/// Returns the name without the unit, which the axis contains.
fn row_name(row: &mask::PublishedRow) -> String {
    let metric = row.metric.split_once(", ").map_or(row.metric, |(metric, _)| metric);
    format!("{metric}, {}", row.when)
}

fn sweep(seed: u64) -> html::Lines {
    let parameters = Parameters { turns_per_cpu: TURNS, ..Parameters::default() };
    let latency = html::Axis::new("latency").unit("cycles").logarithmic();
    let mut lines = html::Lines::new(html::Axis::new("CPUs"), latency);
    for policy in MaskPolicy::ALL {
        let outcomes = mask::sweep(&parameters, policy, &SWEEP, seed);
        let points = outcomes.iter().filter_map(|at| Some((f64::from(at.cpus), at.latency?)));
        lines.series(policy.name(), points);
    }
    lines
}
