//! The published NUMA scan: the reasons for skipped regions, with and without the series on
//! selective scanning.

use std::fmt;

use percid_report as html;
use percid_sim::numa::experiment::Series;
use percid_sim::numa::outcome::REASONS;
use percid_sim::numa::paper::{Cell, Variant};
use percid_sim::numa::predictions::GainPoint;
use percid_sim::numa::{self, Paper};
use percid_sim::paper::bounds;
use percid_sim::paper::leave_one_out::LeaveOneOut;
use percid_sim::paper::prediction::Kind;
use percid_sim::run_control::RunControl;
use serde::Serialize;

use super::left_out;
use crate::sim::bounds::Bounds;
use crate::sim::errors;
use crate::sim::numbers::{self, Number, figure, optional, percent};
use percid_command::table::{self, Table};

/// The keys of this part in the JSON document.
#[derive(Debug, Serialize)]
pub(super) struct NumaFigures {
    #[serde(flatten)]
    paper: Paper,
    #[serde(skip_serializing_if = "Option::is_none")]
    leave_one_out: Option<LeaveOneOut>,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

const TITLE: &str = "NUMA scan: NUMA01_THREADLOCAL on 2 x Intel Xeon (Cascade Lake), Linux 6.6-rc2 without (base) and with \
                     the series on selective scanning";

/// The origins of the values.
const ORIGINS: &str = "published: measured by others. simulated, its deviation and error: fitted, by the numbers \
                       marked so below, each of which names what it was fitted to; what none of them names is \
                       forecast, and so are other rules, other numbers of workers, and the experiment without an \
                       assumption.";

/// A row of the table: name, simulated and published value, and a flag for values outside their
/// bounds.
struct Line<'a> {
    series: Series,
    name: String,
    cell: &'a Cell,
    is_outside: bool,
}

fn table(lines: &[Line<'_>]) -> Table {
    let columns = ["series", "figure", "published", "simulated", "deviation", "error"];
    let mut table = Table::new(columns, 2);
    for Line { series, name, cell, is_outside } in lines {
        table.row([
            table::Cell::from(series.name()),
            table::Cell::from(name.as_str()),
            table::Cell::from(figure(cell.published)),
            table::Cell::from(figure(cell.model)),
            table::Cell::from(figure(cell.deviation)),
            table::Cell::judged(percent(cell.error_percent), *is_outside),
        ]);
    }
    table
}

impl NumaFigures {
    pub(super) fn simulate(seed: u64) -> NumaFigures {
        let paper = numa::paper(seed);
        let bounds = Bounds::new(bounds::numa(&paper));
        NumaFigures { paper, leave_one_out: None, bounds }
    }

    /// Adds the predictions of values by fits without them, unless that is stopped.
    pub(super) fn cross_validate(self, progress: &RunControl) -> NumaFigures {
        let leave_one_out = numa::left_out::left_out(self.paper.seed, progress);
        NumaFigures { leave_one_out, ..self }
    }

    fn counts(&self) -> Vec<Line<'_>> {
        let lines = self.paper.rows.iter().map(|row| Line {
            series: row.series,
            name: match row.kind {
                Kind::ByConstruction => format!("{} (by construction)", row.reason.name()),
                _ => row.reason.name().to_owned(),
            },
            cell: &row.cell,
            is_outside: row.kind != Kind::ByConstruction && !bounds::numa_count(row).holds,
        });
        lines.collect()
    }

    fn others(&self) -> Vec<Line<'_>> {
        let times = self.paper.elapsed.cells().map(|(series, cell)| Line {
            series,
            name: "elapsed, s (by construction)".to_owned(),
            cell,
            is_outside: !bounds::numa_elapsed(series, cell).holds,
        });
        let counters = self.paper.counters.iter().map(|counter| Line {
            series: counter.series,
            name: counter.metric.clone(),
            cell: &counter.cell,
            is_outside: false,
        });
        times.into_iter().chain(counters).collect()
    }

    fn gain(&self) -> String {
        let elapsed = &self.paper.elapsed;
        format!(
            "The series saves {:.1} % of the time; published {:.1} %.",
            elapsed.model_gain_percent, elapsed.published_gain_percent
        )
    }

    fn numbers(&self) -> impl Iterator<Item = Number<'_>> {
        self.paper.parameters.iter().map(|parameter| Number {
            name: parameter.name,
            value: parameter.value.clone(),
            origin: parameter.origin,
            fitted: parameter.fitted,
        })
    }

    fn variants(&self) -> [(&'static str, &[Variant]); 2] {
        [
            (
                "Contribution of each assumption: the experiment without it",
                &self.paper.contributions,
            ),
            ("Other rules", &self.paper.rules),
        ]
    }
}

/// Returns a table of counts, each followed by its change.
fn variants_table(variants: &[Variant]) -> Table {
    let reasons = REASONS.map(|reason| reason.name());
    let columns = ["what is changed", "series"].into_iter().chain(reasons);
    let columns = columns.chain([
        "elapsed, s",
        "deviation, s",
        "passes",
        "PMD updates",
        "migrated",
        "covered after, s",
    ]);
    let mut table = Table::new(columns, 2);
    variants.iter().for_each(|variant| table.row(variant_cells(variant)));
    table
}

fn variant_cells(variant: &Variant) -> Vec<String> {
    let mut cells = vec![variant.name.to_owned(), variant.series.name().to_owned()];
    let counts = variant.reasons.iter().zip(&variant.change_percent);
    cells.extend(counts.map(|(count, change)| match change {
        Some(change) => format!("{} ({change:+.0} %)", figure(*count)),
        None => figure(*count),
    }));
    cells.extend([
        figure(variant.elapsed_s),
        figure(variant.elapsed_deviation_s),
        figure(variant.passes),
        figure(variant.pmd_updates),
        figure(variant.pages_migrated),
        optional(variant.covered_after_s),
    ]);
    cells
}

/// Returns the count that changes most, and its variant.
fn most_changed(variants: &[Variant]) -> String {
    let changes = variants.iter().flat_map(|variant| {
        let changes = REASONS.iter().zip(&variant.change_percent);
        changes.filter_map(move |(reason, change)| Some((variant, *reason, (*change)?)))
    });
    let most = changes.max_by(|(.., one), (.., other)| one.abs().total_cmp(&other.abs()));
    most.map_or(String::new(), |(variant, reason, change)| {
        let (name, series) = (variant.name, variant.series.name());
        let reason = reason.name();
        format!("Greatest change of a count: {reason} of {series}, {change:+.0} % ({name}).")
    })
}

/// Returns the forecast over the number of workers.
fn gains_table(points: &[GainPoint]) -> Table {
    let columns = ["workers a process", "base, s", "selective, s", "saved", "covered after, s"];
    let mut table = Table::new(columns, 1);
    for point in points {
        table.row([
            point.workers.to_string(),
            figure(point.base_s),
            figure(point.selective_s),
            format!("{:+.1} %", point.gain_percent),
            optional(point.covered_after_s),
        ]);
    }
    table
}

const GAINS: &str = "Forecast: what the series saves over the number of workers, on as many CPUs";

impl fmt::Display for NumaFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}")?;
        writeln!(f, "{}", table(&self.counts()))?;
        writeln!(f, "{}", table(&self.others()))?;
        writeln!(f, "  {} {}", self.gain(), self.result())?;
        if let Some(found) = &self.leave_one_out {
            writeln!(f, "{}", left_out::text(found))?;
        }
        writeln!(f, "  {ORIGINS}")?;
        for (what, variants) in self.variants() {
            write!(f, "\n{what}\n{}", variants_table(variants))?;
        }
        write!(f, "\n{GAINS}\n{}", gains_table(&self.paper.gain_by_workers))?;
        writeln!(f, "\nNumbers of the model\n{}", numbers::table(self.numbers()))?;
        for note in &self.paper.notes {
            writeln!(f, "  {note}")?;
        }
        write!(f, "\n{}", self.bounds)
    }
}

impl NumaFigures {
    pub(super) fn show_on(&self, page: &mut html::Page) {
        let text = format!("{} {}\n\n{TITLE}.\n\n{ORIGINS}", self.gain(), self.result());
        page.section("NUMA scan", text);
        if let Some(found) = &self.leave_one_out {
            left_out::show_on(found, page);
        }
        page.chart(
            "Regions left out, by reason",
            "Summed over seven runs of two processes.",
            self.dots(),
        );
        page.chart(
            "Pages armed at least once",
            "Means over the processes that still run.",
            self.course(|second| second.covered),
        );
        page.chart(
            "Pages on the node of their worker",
            "Zeroed memory only.",
            self.course(|second| second.local),
        );
        table(&self.counts()).show_as("Regions left out", page);
        table(&self.others()).show_as("Elapsed times and counters", page);
        for (what, variants) in self.variants() {
            page.subsection(what, most_changed(variants));
            variants_table(variants).show_as("All figures", page);
        }
        page.subsection(GAINS, self.gains_told());
        page.chart("Time saved", "Two processes; the bandwidth is the same for all.", self.gains());
        gains_table(&self.paper.gain_by_workers).show_as("All figures of the forecast", page);
        let text = [numbers::sentence(self.numbers()), self.paper.notes.join("\n\n")];
        page.subsection("Numbers of the model", text.join("\n\n"));
        numbers::table(self.numbers()).show_as("Numbers, and where they come from", page);
        self.bounds.show_on(page);
    }

    /// Returns the errors in one sentence.
    pub(super) fn result(&self) -> String {
        let rows = self.paper.rows.iter().filter(|row| row.kind != Kind::ByConstruction);
        let error = rows.filter_map(|row| {
            let place = format!("{}, {}", row.reason.name(), row.series.name());
            Some((place, row.cell.error_percent?))
        });
        errors::sentence("counts", error)
    }

    /// Returns the savings with the fewest and the most workers.
    fn gains_told(&self) -> String {
        let points = &self.paper.gain_by_workers;
        let ends = points.first().zip(points.last());
        ends.map_or(String::new(), |(few, many)| {
            format!(
                "From {:+.1} % with {} workers to {:+.1} % with {}.",
                few.gain_percent, few.workers, many.gain_percent, many.workers
            )
        })
    }

    /// Returns both series side by side.
    fn dots(&self) -> html::Dots {
        let count = html::Axis::new("count").logarithmic();
        let reason = html::Axis::new("reason");
        let dots = html::Dots::new(reason, count, ["published", "simulated"]).reference();
        let mut dots = dots.panels(Series::ALL.map(Series::name)).notes(["error"]);
        for reason in REASONS {
            let of_series = |series: Series| {
                let mut rows = self.paper.rows.iter();
                let row = rows.find(|row| row.reason == reason && row.series == series);
                row.map_or(html::Dot::default(), |row| {
                    let error = percent(row.cell.error_percent);
                    let is_outside = !bounds::numa_count(row).holds;
                    let error = if is_outside { html::Cell::outside(error) } else { error.into() };
                    html::Dot::new([row.cell.published, row.cell.model]).note(error)
                })
            };
            dots.row(reason.name(), Series::ALL.map(of_series));
        }
        dots
    }

    fn gains(&self) -> html::Lines {
        let mut lines = html::Lines::new(
            html::Axis::new("workers a process"),
            html::Axis::new("time saved").unit("%"),
        );
        let points = self.paper.gain_by_workers.iter();
        lines
            .series("forecast", points.map(|point| (f64::from(point.workers), point.gain_percent)));
        lines
    }

    fn course(&self, share: fn(&numa::outcome::Second) -> f64) -> html::Lines {
        let mut lines =
            html::Lines::new(html::Axis::new("time").unit("s"), html::Axis::new("share").unit("%"));
        for course in &self.paper.courses {
            let points = course.seconds.iter().zip(1..);
            let points = points.map(|(second, at)| (f64::from(at), 100.0 * share(second)));
            lines.series(course.series.name(), points);
        }
        lines
    }
}
