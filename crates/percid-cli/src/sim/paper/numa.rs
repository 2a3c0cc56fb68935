//! The published NUMA scan: why regions were left out, with and without the series on selective
//! scanning.

use std::fmt;

use percid_report as html;
use percid_sim::numa::outcome::REASONS;
use percid_sim::numa::paper::{Cell, Series, Variant};
use percid_sim::numa::{self, Paper};
use percid_sim::paper::bounds;
use serde::Serialize;

use crate::sim::bounds::Bounds;
use crate::sim::numbers::{self, Number, figure, optional, percent};
use percid_command::table::{self, Table};

/// The keys of this part.
#[derive(Debug, Serialize)]
pub(super) struct NumaFigures {
    #[serde(flatten)]
    paper: Paper,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

const TITLE: &str = "NUMA scan: NUMA01_THREADLOCAL on 2 x Intel Xeon (Cascade Lake), Linux 6.6-rc2 without (base) and with \
                     the series on selective scanning";

/// A row of the table: what, simulated and published, and whether it is out of its bounds.
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
        NumaFigures { paper, bounds }
    }

    fn counts(&self) -> Vec<Line<'_>> {
        let lines = self.paper.rows.iter().map(|row| Line {
            series: row.series,
            name: row.reason.name().to_owned(),
            cell: &row.cell,
            is_outside: !bounds::numa_count(row).holds,
        });
        lines.collect()
    }

    fn others(&self) -> Vec<Line<'_>> {
        let times = self.paper.elapsed.cells().map(|(series, cell)| Line {
            series,
            name: "elapsed, s".to_owned(),
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
                "What each assumption contributes: the experiment without it",
                &self.paper.contributions,
            ),
            ("Other rules", &self.paper.rules),
        ]
    }
}

/// Counts carry their change behind them.
fn variants_table(variants: &[Variant]) -> Table {
    let reasons = REASONS.map(|reason| reason.name());
    let columns = ["what is changed", "series"].into_iter().chain(reasons);
    let columns = columns.chain(["elapsed, s", "passes", "covered after, s"]);
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
        figure(variant.passes),
        optional(variant.covered_after_s),
    ]);
    cells
}

impl fmt::Display for NumaFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}")?;
        writeln!(f, "{}", table(&self.counts()))?;
        writeln!(f, "{}", table(&self.others()))?;
        writeln!(f, "  {}", self.gain())?;
        for (what, variants) in self.variants() {
            write!(f, "\n{what}\n{}", variants_table(variants))?;
        }
        writeln!(f, "\nNumbers of the model\n{}", numbers::table(self.numbers()))?;
        for note in &self.paper.notes {
            writeln!(f, "  {note}")?;
        }
        write!(f, "\n{}", self.bounds)
    }
}

impl NumaFigures {
    pub(super) fn show_on(&self, page: &mut html::Page) {
        page.section("NUMA scan", format!("{TITLE}\n\n{}", self.gain()));
        table(&self.counts()).show_on(page);
        table(&self.others()).show_on(page);
        for series in Series::ALL {
            page.chart(
                format!("Regions left out, by reason: {}", series.name()),
                "Summed over seven runs of two processes.",
                self.bars(series),
            );
        }
        page.chart(
            "Pages armed at least once",
            "Means over the processes that still run.",
            self.course(|second| second.covered),
        );
        page.chart(
            "Pages on the node of their worker",
            "Of the zeroed memory.",
            self.course(|second| second.local),
        );
        for (what, variants) in self.variants() {
            page.section(format!("NUMA scan: {}", what.to_lowercase()), "");
            variants_table(variants).show_on(page);
        }
        page.section("NUMA scan: numbers of the model", self.paper.notes.join("\n\n"));
        numbers::table(self.numbers()).show_on(page);
        self.bounds.show_on("NUMA scan", page);
    }

    fn bars(&self, series: Series) -> html::Bars {
        let count = html::Axis::new("count").logarithmic();
        let mut bars =
            html::Bars::grouped(html::Axis::new("reason"), count, ["published", "simulated"]);
        for row in self.paper.rows.iter().filter(|row| row.series == series) {
            bars.category(row.reason.name(), [row.cell.published, row.cell.model]);
        }
        bars
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
