//! The published intermittent benchmark: cost per burst of three policies.

use std::fmt;

use percid_report as html;
use percid_sim::cost::Class;
use percid_sim::paper::accounts;
use percid_sim::paper::basis::Basis;
use percid_sim::paper::bounds;
use percid_sim::paper::cross_validation::{self, CrossValidation, Left, Predicted};
use percid_sim::paper::intermittent::{self, Cell, Paper};
use percid_sim::paper::prediction::AGREES;
use percid_sim::paper::sensitivity::{Number, Sensitivity};
use percid_sim::paper::setting::Setting;
use percid_sim::paper::table::POLICIES;
use percid_sim::run_control::RunControl;
use serde::Serialize;

use crate::sim::bounds::Bounds;
use crate::sim::errors;
use crate::sim::numbers::{figure, hundredths, percent, plain};
use percid_command::table::{Cell as Figure, Table};
use percid_command::text_table::{Align, TextTable};

/// The keys of this part in the JSON document.
#[derive(Debug, Serialize)]
pub(super) struct IntermittentFigures {
    seed: u64,
    #[serde(flatten)]
    paper: Paper,
    #[serde(skip_serializing_if = "Option::is_none")]
    cross_validation: Option<CrossValidation>,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

const TITLE: &str =
    "Intermittent benchmark, ns per burst of 16 kB: Linux commit 7e019dcc470f on 2 x AMD EPYC 9654";

impl IntermittentFigures {
    /// Simulates the table. `None` if it was stopped before the table was complete.
    pub(super) fn simulate(seed: u64, progress: &RunControl) -> Option<IntermittentFigures> {
        let paper = intermittent::paper(seed, progress)?;
        let bounds = Bounds::new(bounds::intermittent(&paper));
        Some(IntermittentFigures { seed, paper, cross_validation: None, bounds })
    }

    /// Adds the predictions of rows by fits without them, unless that is stopped.
    pub(super) fn cross_validate(self, progress: &RunControl) -> IntermittentFigures {
        let setting = Setting::published();
        let found = cross_validation::cross_validation(&setting, self.seed, progress);
        let bounds = found.as_ref().map(bounds::cross_validation).unwrap_or_default();
        let bounds = self.bounds.and(bounds);
        IntermittentFigures { cross_validation: found, bounds, ..self }
    }

    /// Returns the numbers, with the dependence of the mean error on each.
    fn numbers(&self) -> Table {
        let columns = ["number", "value", "halved", "doubled", "where it comes from"];
        let mut table = Table::new(columns, 1).ending_in_texts(1);
        for Number { parameter, sensitivity } in &self.paper.parameters {
            let mark = if parameter.fitted { " (fitted)" } else { "" };
            let [halved, doubled] = changes(sensitivity.as_ref());
            table.row([
                format!("{}{mark}", parameter.name),
                plain(parameter.value),
                halved,
                doubled,
                parameter.origin.clone(),
            ]);
        }
        table
    }

    /// Returns the number of fitted numbers, and the one on which the mean error depends most.
    fn numbers_told(&self) -> String {
        let parameters = &self.paper.parameters;
        let fitted = parameters.iter().filter(|number| number.parameter.fitted).count();
        let change = |number: &Number| {
            let found = number.sensitivity.as_ref().filter(|found| !found.unused)?;
            Some((number.parameter.name, found.halved.abs().max(found.doubled.abs())))
        };
        let most = parameters.iter().filter_map(change);
        let most = most.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let most = most.map_or(String::new(), |(name, change)| {
            let points = hundredths(change);
            format!(" Most depends on {name}: halved or doubled, it changes the mean error by {points} points.")
        });
        format!("{} numbers, {fitted} of them fitted.{most}\n\n{NUMBERS}.", parameters.len())
    }

    /// Returns the rows of the published table: the cells of all policies.
    fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.paper.rows.chunks(POLICIES.len())
    }
}

/// Returns the axis of the published table's rows.
fn part() -> html::Axis {
    html::Axis::new("part of the machine")
}

fn ns() -> html::Axis {
    html::Axis::new("time per burst").unit("ns").logarithmic()
}

/// Returns the points by which the mean error changes if a number is halved or doubled.
fn changes(sensitivity: Option<&Sensitivity>) -> [String; 2] {
    match sensitivity {
        None => ["-", "-"].map(str::to_owned),
        Some(found) if found.unused => ["unused", "unused"].map(str::to_owned),
        Some(found) => {
            [found.halved, found.doubled].map(|change| format!("{:+.2}", 100.0 * change))
        }
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
        Figure::judged(error, cell.error.abs() > AGREES),
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
        writeln!(f, "  {ORIGINS}\n")?;
        writeln!(f, "Slowdown of linux-6.4 against linux-6.13\n{}", self.speedups())?;
        writeln!(f, "Without one assumption: simulated, nothing is fitted again")?;
        writeln!(f, "{}", self.assumptions())?;
        writeln!(f, "{NUMBERS}\n{}", self.numbers())?;
        if let Some(found) = &self.cross_validation {
            writeln!(f, "{LEFT_OUT}\n{}  {}\n", left_out(found), verdict(found))?;
        }
        write!(f, "{}", self.bounds)
    }
}

/// The origins of the table's values.
const ORIGINS: &str = "published: measured by others. simulated and its error: fitted, by the numbers marked so below. \
                       pre-faulted, % of bursts, IDs and scans: forecast, nobody has published them; pre-faulted is if \
                       all memory had been written to beforehand.";

const NUMBERS: &str = "Numbers of the machine and the benchmark. halved, doubled: by how many points the mean error \
                       changes then; unused: no cell depends on it";

const LEFT_OUT: &str =
    "Rows left out of the fit, and predicted from the others: error of each policy, %";

fn verdict(found: &CrossValidation) -> String {
    let [mean, worst] = [found.mean_error, found.worst_error].map(hundredths);
    let list = accounts::intermittent();
    let fitted = list.iter().filter(|one| one.basis == Basis::Fitted).map(|one| one.name);
    let fitted: Vec<&str> = fitted.collect();
    let policies = found.policies.iter().map(|one| {
        let [mean, worst] = [one.mean_error, one.worst_error].map(hundredths);
        format!("{} {mean} % (worst {worst} %)", one.policy)
    });
    let policies: Vec<String> = policies.collect();
    format!(
        "Each row from all others: mean error {mean} %, worst {worst} %; {}. {} distinct predictions \
         of {} (others differ by at most 2 % from one of their row). {} fitted numbers, of which the \
         fits change {}; the exponents are choices of laws: {}.",
        policies.join(", "),
        found.distinct,
        found.rows.iter().map(|left| left.cells.len()).sum::<usize>(),
        fitted.len(),
        found.rows.first().map_or(0, |left| left.fitted.len()),
        fitted.join(", ")
    )
}

/// Returns, for each row that was left out, its three predictions and the fit without it, and for
/// each pause its twelve.
fn left_out(found: &CrossValidation) -> Table {
    let fitted = found.rows.first().map_or(Vec::new(), |left| left.fitted.clone());
    let fitted = fitted.iter().map(|number| number.name);
    let policies = POLICIES.iter().flat_map(|policy| [*policy, "published, ns", "error"]);
    let columns = ["left out"].into_iter().chain(policies).chain(["mean, %", "worst, %"]);
    let mut table = Table::new(columns.chain(fitted), 1);
    for left in found.rows.iter().chain(&found.delays) {
        for (at, cells) in left.cells.chunks(POLICIES.len()).enumerate() {
            table.row(left_out_row(left, cells, at == 0));
        }
    }
    table
}

/// Returns the cells of one row. The cells of the fit are in its first row.
fn left_out_row(left: &Left, cells: &[Predicted], is_first: bool) -> Vec<Figure> {
    let place = cells
        .first()
        .map_or(String::new(), |cell| format!("{}, {} ms", cell.config, cell.delay_ms));
    let name = if left.cells.len() > cells.len() && is_first {
        format!("{}: {place}", left.left_out)
    } else {
        place
    };
    let mut row = vec![Figure::from(name)];
    for cell in cells {
        let is_outside = cell.error.abs() > AGREES;
        row.push(Figure::from(figure(cell.model_ns)));
        row.push(Figure::from(figure(cell.published_ns)));
        row.push(Figure::judged(percent(Some(100.0 * cell.error)), is_outside));
    }
    let of_the_fit = [hundredths(left.mean_error), hundredths(left.worst_error)];
    let numbers = left.fitted.iter().map(|number| figure(number.value));
    let of_the_fit = of_the_fit.into_iter().chain(numbers);
    row.extend(of_the_fit.map(|text| Figure::from(if is_first { text } else { String::new() })));
    row
}

/// Returns the mean and the worst error of each row that was left out.
fn left_out_bars(found: &CrossValidation) -> html::Bars {
    let error = html::Axis::new("absolute error").unit("%");
    let mut bars = html::Bars::grouped(html::Axis::new("left out"), error, ["mean", "worst"]);
    for left in found.rows.iter().chain(&found.delays) {
        let errors = [100.0 * left.mean_error, 100.0 * left.worst_error];
        bars.category(left.left_out.as_str(), errors);
    }
    bars
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
        page.section(
            "Intermittent benchmark",
            format!("{}\n\n{TITLE}.\n\n{ORIGINS}", self.result()),
        );
        page.chart("Time per burst", "Simulated beside published.", self.cost_dots());
        page.chart("Place of the memory", "As bursts found it.", self.share_bars());
        page.chart("Slowdown of linux-6.4 against linux-6.13", "", self.speedup_dots());
        page.chart(
            "If all memory had been written to beforehand",
            "A forecast: nothing of it was published.",
            self.forecast_dots(),
        );
        self.table().show_as("All figures of the 24 cells", page);
        page.subsection("Without one assumption", self.most_important());
        page.chart("Errors of the cells", "", self.assumption_bars());
        self.assumptions().show_as("Assumptions", page);
        page.subsection("Numbers of the machine and the benchmark", self.numbers_told());
        self.numbers().show_as("Numbers, and where they come from", page);
        if let Some(found) = &self.cross_validation {
            let text = format!("{}\n\n{LEFT_OUT}", verdict(found));
            page.subsection("Rows left out of the fit", text);
            page.chart("Errors of what was left out", "", left_out_bars(found));
            left_out(found).show_as("All predictions", page);
        }
        self.bounds.show_on(page);
    }

    pub(super) fn result(&self) -> String {
        let error = |cell: &Cell| (format!("{}, {}", place(cell), cell.policy), 100.0 * cell.error);
        errors::sentence("cells", self.paper.rows.iter().map(error))
    }

    fn most_important(&self) -> String {
        let assumptions = self.paper.assumptions.iter();
        let most =
            assumptions.max_by(|one, other| one.mean_abs_error.total_cmp(&other.mean_abs_error));
        most.map_or(String::new(), |without| {
            format!(
                "Most depends on this one: {}. Without it the mean error is {} % instead of {} %.",
                without.name,
                hundredths(without.mean_abs_error),
                hundredths(self.paper.mean_abs_error)
            )
        })
    }

    /// Returns a panel for each policy, with the published table's rows grouped by their pauses.
    fn multiples(&self, dots: html::Dots, dot: impl Fn(&Cell) -> html::Dot) -> html::Dots {
        let mut dots = dots.panels(POLICIES);
        let mut pause = None;
        for row in self.rows() {
            let Some(first) = row.first() else { continue };
            if pause.replace(first.delay_ms) != Some(first.delay_ms) {
                dots.group(format!("pauses of {} ms", first.delay_ms));
            }
            dots.row(first.config.as_str(), row.iter().map(&dot));
        }
        dots
    }

    fn cost_dots(&self) -> html::Dots {
        let dots = html::Dots::new(part(), ns(), ["published", "simulated"]).reference();
        self.multiples(dots.notes(["error"]), |cell| {
            let error = percent(Some(100.0 * cell.error));
            let is_outside = cell.error.abs() > AGREES;
            let error = if is_outside { html::Cell::outside(error) } else { error.into() };
            html::Dot::new([cell.published_ns, cell.model_ns]).note(error)
        })
    }

    fn forecast_dots(&self) -> html::Dots {
        let dots = html::Dots::new(part(), ns(), ["simulated", "simulated, written to beforehand"]);
        self.multiples(dots, |cell| html::Dot::new([cell.model_ns, cell.pre_faulted_ns]))
    }

    fn speedup_dots(&self) -> html::Dots {
        let ratio = html::Axis::new("times slower").logarithmic();
        let series = ["published", "simulated"];
        let name = html::Axis::new("machine and pause");
        let mut dots = html::Dots::new(name, ratio, series).reference().notes(series);
        for row in &self.paper.speedups {
            let dot = html::Dot::new([row.published, row.model]);
            let dot = dot.note(figure(row.published)).note(figure(row.model));
            dots.row(format!("{}, {} ms", row.config, row.delay_ms), [dot]);
        }
        dots
    }

    fn table(&self) -> Table {
        let classes = Class::ALL.map(|class| format!("{}, %", class.name()));
        let columns = ["policy", "published, ns", "simulated, ns", "error", "pre-faulted, ns"];
        let names = ["machine and pause"].into_iter().chain(columns).map(str::to_owned);
        let names = names.chain(classes).chain(["IDs".to_owned(), "scans".to_owned()]);
        let mut table = Table::new(names, 2);
        for cell in &self.paper.rows {
            table.row([Figure::from(place(cell))].into_iter().chain(cells(cell)));
        }
        table
    }

    /// Returns the bars of all policies, grouped by machine.
    fn share_bars(&self) -> html::Bars {
        let share = html::Axis::new("share of bursts").unit("%");
        let name = html::Axis::new("policy");
        let mut bars = html::Bars::stacked(name, share, Class::ALL.map(Class::name));
        for row in self.rows() {
            bars.group(row.first().map_or(String::new(), place));
            for cell in row {
                bars.category(cell.policy, cell.shares.iter().map(|share| 100.0 * share.bursts));
            }
        }
        bars
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

#[cfg(test)]
mod tests {
    use super::*;
    use percid_sim::engine::Share;
    use percid_sim::paper::cross_validation::{Fitted, OfPolicy};

    fn left(left_out: &str, at: usize) -> Left {
        let predicted = |(number, &policy): (usize, &&'static str)| Predicted {
            config: left_out.to_owned(),
            delay_ms: 10,
            policy,
            model_ns: (1000 * at + number) as f64,
            published_ns: 2000.0,
            error: 0.5,
        };
        Left {
            left_out: format!("without {left_out}"),
            mean_error: 0.25,
            worst_error: 0.5,
            cells: POLICIES.iter().enumerate().map(predicted).collect(),
            fitted: vec![Fitted { name: "first_touch_us", value: at as f64 }],
        }
    }

    fn cell(model_ns: usize, policy: &'static str) -> Cell {
        let share = |class| Share { class, bursts: 0.125, cost: 0.0 };
        Cell {
            config: "8-core/1-L3".to_owned(),
            delay_ms: 10,
            policy,
            model_ns: model_ns as f64,
            published_ns: 4000.0,
            error: model_ns as f64 / 4000.0 - 1.0,
            pre_faulted_ns: 1234.0,
            shares: Class::ALL.map(share).to_vec(),
            ids_distinct: 77,
            scans: 0.0,
        }
    }

    fn figures(cross_validation: Option<CrossValidation>) -> IntermittentFigures {
        let (speedups, assumptions, parameters) = Default::default();
        let rows = POLICIES.iter().enumerate().map(|(at, policy)| cell(4321 + at, policy));
        let rows = rows.collect();
        let paper = Paper {
            rows,
            mean_abs_error: 0.0,
            worst_abs_error: 0.0,
            speedups,
            assumptions,
            parameters,
        };
        let bounds = Bounds::new(Vec::new());
        IntermittentFigures { seed: 1, paper, cross_validation, bounds }
    }

    fn page(figures: &IntermittentFigures) -> String {
        let mut page = html::Page::new("percid sim published", "");
        figures.show_on(&mut page);
        page.render()
    }

    #[test]
    fn every_cell_is_told_and_shown() {
        let told = figures(None);
        let (text, html) = (told.to_string(), page(&told));
        for said in POLICIES {
            assert!(text.contains(said) && html.contains(said), "{said}:\n{text}");
        }
        for said in ["8-core/1-L3, 10 ms", "4321", "4322", "4323", "4000", "1234", "12.5", "77"] {
            assert!(text.contains(said) && html.contains(said), "{said}:\n{text}");
        }
        let document = serde_json::to_value(&told).expect("a document");
        assert_eq!(
            (&document["rows"][1]["model_ns"], &document["seed"]),
            (&4322.0.into(), &1.into())
        );
        assert!(document.get("cross_validation").is_none() && document["bounds"].is_array());
    }

    /// The fits themselves take minutes: these values are invented.
    #[test]
    fn what_was_left_out_of_the_fit_is_told_and_shown() {
        let rows = vec![left("one-l3", 3), left("cores", 4)];
        let delays = vec![left("pauses", 5)];
        let policy = OfPolicy { policy: "linux-6.4", mean_error: 0.123, worst_error: 0.456 };
        let (policies, distinct) = (vec![policy], 5);
        let found = CrossValidation {
            mean_error: 0.25,
            worst_error: 0.5,
            policies,
            distinct,
            rows,
            delays,
        };
        let told = figures(Some(found));
        let (text, html) = (told.to_string(), page(&told));
        for said in ["without one-l3", "without cores", "without pauses"] {
            assert!(html.contains(said), "{said} is not on the page");
        }
        for said in ["linux-6.4 12.3 % (worst 45.6 %)", "5 distinct", "cooling_exponent"] {
            assert!(text.contains(said) && html.contains(said), "{said}:\n{text}");
        }
        for said in ["one-l3, 10 ms", "cores, 10 ms", "pauses, 10 ms", "3001", "4002", "25"] {
            assert!(text.contains(said) && html.contains(said), "{said}:\n{text}");
        }
        let alone = figures(None);
        let texts = [alone.to_string(), page(&alone)];
        assert!(texts.iter().all(|text| !text.contains(LEFT_OUT)), "the control");
        assert!(text.contains(LEFT_OUT) && html.contains(LEFT_OUT));
    }
}
