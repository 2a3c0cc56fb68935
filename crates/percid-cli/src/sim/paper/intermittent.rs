//! The published intermittent benchmark: cost per burst of three policies.

use std::fmt;

use percid_report as html;
use percid_sim::cost::Class;
use percid_sim::paper::bounds::{self, WORST_ERROR};
use percid_sim::paper::intermittent::{self, Cell, POLICIES, Paper};
use percid_sim::run_control::RunControl;
use serde::Serialize;

use crate::sim::bounds::Bounds;
use crate::sim::numbers::{self, Number, figure, hundredths, percent};
use percid_command::table::{Cell as Figure, Table};
use percid_command::text_table::{Align, TextTable};

/// The keys of this part.
#[derive(Debug, Serialize)]
pub(super) struct IntermittentFigures {
    seed: u64,
    #[serde(flatten)]
    paper: Paper,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

const TITLE: &str =
    "Intermittent benchmark, ns per burst of 16 kB: Linux commit 7e019dcc470f on 2 x AMD EPYC 9654";

impl IntermittentFigures {
    /// None if it was stopped before the table was there.
    pub(super) fn simulate(seed: u64, progress: &RunControl) -> Option<IntermittentFigures> {
        let paper = intermittent::paper(seed, progress)?;
        let bounds = Bounds::new(bounds::intermittent(&paper));
        Some(IntermittentFigures { seed, paper, bounds })
    }

    fn numbers(&self) -> impl Iterator<Item = Number<'_>> {
        self.paper.parameters.iter().map(Number::from)
    }

    /// Rows of the published table: the cells of all policies.
    fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.paper.rows.chunks(POLICIES.len())
    }
}

fn place(cell: &Cell) -> String {
    format!("{}, {} ms", cell.config, cell.delay_ms)
}

fn cells(cell: &Cell) -> Vec<Figure> {
    let error = percent(Some(100.0 * cell.error));
    let mut cells = vec![
        Figure::from(cell.policy),
        Figure::from(figure(cell.published_ns)),
        Figure::from(figure(cell.model_ns)),
        Figure::judged(error, cell.error.abs() > WORST_ERROR),
        Figure::from(figure(cell.pre_faulted_ns)),
    ];
    cells.extend(cell.shares.iter().map(|share| Figure::from(hundredths(share.bursts))));
    cells.extend([Figure::from(cell.ids_distinct.to_string()), Figure::from(figure(cell.scans))]);
    cells
}

const COLUMNS: [&str; 5] = ["policy", "published", "simulated", "error", "pre-faulted"];

impl fmt::Display for IntermittentFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}")?;
        let align = |at: usize| if at == 0 { Align::Left } else { Align::Right };
        let columns = COLUMNS.iter().enumerate().map(|(at, &name)| (name, align(at)));
        let mut table = TextTable::new(columns);
        table.group("% of bursts".to_owned(), Class::ALL.map(|class| (class.name(), Align::Right)));
        table.group("a run".to_owned(), ["IDs", "scans"].map(|name| (name, Align::Right)));
        for row in self.rows() {
            table.heading(row.first().map_or(String::new(), place));
            for cell in row {
                table.row(cells(cell).iter().map(Figure::marked).collect());
            }
        }
        write!(f, "{table}")?;
        writeln!(f, "  pre-faulted: a prediction, if all memory had been written to beforehand\n")?;
        writeln!(f, "How many times slower linux-6.4 is than linux-6.13\n{}", self.speedups())?;
        writeln!(f, "Without one assumption\n{}", self.assumptions())?;
        writeln!(
            f,
            "Numbers of the machine and the benchmark\n{}",
            numbers::table(self.numbers())
        )?;
        write!(f, "{}", self.bounds)
    }
}

impl IntermittentFigures {
    fn speedups(&self) -> Table {
        let mut table = Table::new(["machine and pause", "published", "simulated"], 1);
        for row in &self.paper.speedups {
            let place = format!("{}, {} ms", row.config, row.delay_ms);
            table.row([place, figure(row.published), figure(row.model)]);
        }
        table
    }

    fn assumptions(&self) -> Table {
        let columns =
            ["assumption", "in its place", "mean error, %", "worst, %", "linux-6.4 cells"];
        let mut table = Table::new(columns, 2);
        let [mean, worst] = [self.paper.mean_abs_error, self.paper.worst_abs_error].map(hundredths);
        table.row(["(with all of them)".to_owned(), String::new(), mean, worst, String::new()]);
        for without in &self.paper.assumptions {
            table.row([
                without.name.to_owned(),
                without.instead.to_owned(),
                hundredths(without.mean_abs_error),
                hundredths(without.worst_abs_error),
                percent(Some(100.0 * without.change_of_cold_cells)),
            ]);
        }
        table
    }

    pub(super) fn show_on(&self, page: &mut html::Page) {
        page.section("Intermittent benchmark", TITLE);
        self.table().show_on(page);
        for (at, policy) in POLICIES.iter().enumerate() {
            let ns = html::Axis::new("time per burst").unit("ns").logarithmic();
            let series = ["published", "simulated", "simulated, pre-faulted"];
            let mut bars = html::Bars::grouped(html::Axis::new("machine and pause"), ns, series);
            for cell in self.rows().filter_map(|row| row.get(at)) {
                let values = [cell.published_ns, cell.model_ns, cell.pre_faulted_ns];
                bars.category(place(cell), values);
            }
            page.chart(format!("Time per burst, {policy}"), "", bars);
        }
        self.show_shares_on(page);
        self.speedups().show_on(page);
        page.section("Intermittent benchmark: without one assumption", "");
        self.assumptions().show_on(page);
        page.chart("Errors of the cells", "", self.assumption_bars());
        page.section("Intermittent benchmark: numbers of the machine and the benchmark", "");
        numbers::table(self.numbers()).show_on(page);
        self.bounds.show_on("Intermittent benchmark", page);
    }

    fn table(&self) -> Table {
        let classes = Class::ALL.map(|class| format!("{}, %", class.name()));
        let names = ["machine and pause"].into_iter().chain(COLUMNS).map(str::to_owned);
        let names = names.chain(classes).chain(["IDs".to_owned(), "scans".to_owned()]);
        let mut table = Table::new(names, 2);
        for cell in &self.paper.rows {
            table.row([Figure::from(place(cell))].into_iter().chain(cells(cell)));
        }
        table
    }

    fn show_shares_on(&self, page: &mut html::Page) {
        let share = html::Axis::new("share of bursts").unit("%");
        let name = html::Axis::new("policy, machine and pause");
        let mut bars = html::Bars::stacked(name, share, Class::ALL.map(Class::name));
        for (at, policy) in POLICIES.iter().enumerate() {
            for cell in self.rows().filter_map(|row| row.get(at)) {
                let shares = cell.shares.iter().map(|share| 100.0 * share.bursts);
                bars.category(format!("{policy}: {}", place(cell)), shares);
            }
        }
        page.chart("Where the memory was", "What bursts found.", bars);
    }

    fn assumption_bars(&self) -> html::Bars {
        let error = html::Axis::new("absolute error").unit("%");
        let mut bars = html::Bars::grouped(html::Axis::new("without"), error, ["mean", "worst"]);
        let percent = |mean: f64, worst: f64| [100.0 * mean, 100.0 * worst];
        let own = percent(self.paper.mean_abs_error, self.paper.worst_abs_error);
        bars.category("(with all assumptions)", own);
        for without in &self.paper.assumptions {
            let errors = percent(without.mean_abs_error, without.worst_abs_error);
            bars.category(without.name, errors);
        }
        bars
    }
}
