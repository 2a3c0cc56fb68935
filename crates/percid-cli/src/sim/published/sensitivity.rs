//! The inputs of the published tables: what moves a cell, and what it rests on.

use std::fmt;

use percid_command::table::{Cell, Table};
use percid_report as html;
use percid_sim::mask::MaskInputs;
use percid_sim::numa::inputs::NumaInputs;
use percid_sim::paper::accounts::{self, IN_CODE};
use percid_sim::paper::basis::Basis;
use percid_sim::paper::bounds::Bound;
use percid_sim::paper::inputs::Intermittent;
use percid_sim::paper::walk::{self, Change, MATTERS, Moved, Walk};
use percid_sim::run_control::RunControl;
use serde::Serialize;

use crate::sim::bounds::Bounds;
use crate::sim::numbers::percent;

/// The keys of this part in the JSON document.
#[derive(Debug, Serialize)]
pub(super) struct SensitivityFigures {
    tables: Vec<WalkedTable>,
    in_code: Vec<Constant>,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

/// A table with all its inputs.
#[derive(Debug, Serialize)]
struct WalkedTable {
    table: &'static str,
    #[serde(flatten)]
    walk: Walk,
}

/// A constant of the code that is not moved.
#[derive(Debug, Serialize)]
struct Constant {
    file: &'static str,
    name: &'static str,
    basis: Basis,
    origin: &'static str,
}

const TITLE: &str = "Sensitivity: all inputs of the published tables, each halved and doubled, and nothing fitted again";

/// The part of the intermittent benchmark's runs that is simulated: all of them.
const PART: u64 = 1;
/// Number of repetitions of the NUMA experiment.
const REPETITIONS: u32 = 2;

/// Returns the amount of work of [`SensitivityFigures::simulate`].
pub(super) fn work() -> u64 {
    walk::work(&Intermittent::published(PART))
        + walk::work(&MaskInputs::published())
        + walk::work(&NumaInputs::published(REPETITIONS))
}

impl SensitivityFigures {
    /// Walks over all inputs. `None` if it was stopped.
    pub(super) fn simulate(seed: u64, progress: &RunControl) -> Option<SensitivityFigures> {
        let list = accounts::intermittent();
        let intermittent = walk::walk(&Intermittent::published(PART), &list, &[], seed, progress)?;
        let mask = walk::walk(&MaskInputs::published(), &accounts::MASK, &[], seed, progress)?;
        let numa = NumaInputs::published(REPETITIONS);
        let numa = walk::walk(&numa, &accounts::NUMA, &[], seed, progress)?;
        let tables = [("intermittent", intermittent), ("mask", mask), ("numa", numa)];
        Some(SensitivityFigures::new(tables.map(|(table, walk)| WalkedTable { table, walk })))
    }

    fn new(tables: impl IntoIterator<Item = WalkedTable>) -> SensitivityFigures {
        let tables: Vec<WalkedTable> = tables.into_iter().collect();
        let bound = |table: &WalkedTable| {
            let unlisted = table.walk.unlisted();
            let names = if unlisted.is_empty() { "none" } else { &*unlisted.join(", ") };
            let name =
                format!("{}: inputs that matter and are not on the list ({names})", table.table);
            Bound::new(name, unlisted.len() as f64, None, Some(0.0))
        };
        let bounds = Bounds::new(tables.iter().map(bound).collect());
        let constant = |one: &accounts::InCode| Constant {
            file: one.file,
            name: one.listed.name,
            basis: one.listed.basis,
            origin: one.listed.origin,
        };
        SensitivityFigures { tables, in_code: IN_CODE.iter().map(constant).collect(), bounds }
    }

    /// Returns the numbers of inputs that matter and of those that are not listed, in one sentence.
    pub(super) fn result(&self) -> String {
        let count = |of: fn(&Walk) -> usize| self.tables.iter().map(|table| of(&table.walk)).sum();
        let [matter, all, unlisted]: [usize; 3] = [
            count(|walk| walk.inputs.iter().filter(|input| input.matters).count()),
            count(|walk| walk.inputs.len()),
            count(|walk| walk.unlisted().len()),
        ];
        format!(
            "{matter} of {all} inputs of {} tables change a cell by more than {:.0} %, and {unlisted} of them are not \
             on the list.",
            self.tables.len(),
            100.0 * MATTERS
        )
    }

    fn constants(&self) -> Table {
        let mut table = Table::new(["file", "constant", "rests on", "where it comes from"], 4);
        for one in &self.in_code {
            table.row([one.file, one.name, one.basis.name(), one.origin]);
        }
        table
    }

    pub(super) fn show_on(&self, page: &mut html::Page) {
        let told: Vec<String> = self.tables.iter().map(WalkedTable::told).collect();
        page.section("Sensitivity", format!("{}\n\n{TITLE}.", told.join(" ")));
        for table in &self.tables {
            page.subsection(table.table, table.told());
            let text = "The cell that changes most, if the number is half or twice as large.";
            page.chart(format!("Inputs that matter: {}", table.table), text, table.bars());
            table.table().show_as("All inputs", page);
        }
        page.subsection("Constants in the code", CONSTANTS);
        self.constants().show_as("Constants", page);
        self.bounds.show_on(page);
    }
}

const CONSTANTS: &str = "These are not moved; a test compares them with the models' files.";

impl WalkedTable {
    /// Returns the numbers of inputs that matter, by what they rest on.
    fn told(&self) -> String {
        let Walk { cells, chance, inputs, .. } = &self.walk;
        let matter = inputs.iter().filter(|input| input.matters).count();
        let counts = Basis::ALL.iter().map(|&basis| (self.walk.count(basis), basis.name()));
        let counts = counts.filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, name)| format!("{count} {name}")).collect();
        format!(
            "{}: {matter} of {} inputs change one of {cells} cells by more than {:.0} % ({}); another seed \
             changes one by {}.",
            self.table,
            inputs.len(),
            100.0 * MATTERS,
            counts.join(", "),
            percent(Some(100.0 * chance.change))
        )
    }

    fn table(&self) -> Table {
        let columns =
            ["input", "value", "rests on", "halved", "doubled", "cell", "where it comes from"];
        let mut table = Table::new(columns, 3).ending_in_texts(2);
        for input in &self.walk.inputs {
            let is_unlisted = input.matters && input.basis.is_none();
            table.row([
                Cell::from(input.name.as_str()),
                Cell::from(input.value.as_str()),
                Cell::judged(input.basis.map_or("not listed", Basis::name), is_unlisted),
                Cell::from(changed(input.halved.as_ref())),
                Cell::from(changed(input.doubled.as_ref())),
                Cell::from(cell(input)),
                Cell::from(input.origin.as_str()),
            ]);
        }
        table
    }

    /// Returns the changes of the inputs that matter. A change from 0 is in the table only.
    fn bars(&self) -> html::Bars {
        let change = html::Axis::new("change of a cell").unit("%");
        let name = html::Axis::new("input");
        let mut bars = html::Bars::grouped(name, change, ["halved", "doubled"]);
        for input in self.walk.inputs.iter().filter(|input| input.matters) {
            let changes = [&input.halved, &input.doubled].map(|change| {
                let change = change.as_ref().map(|change| 100.0 * change.change.abs());
                change.filter(|change| change.is_finite())
            });
            let basis = input.basis.map_or("not listed", Basis::name);
            bars.category(format!("{} ({basis})", input.name), changes);
        }
        bars
    }
}

fn changed(change: Option<&Change>) -> String {
    match change {
        None => "-".to_owned(),
        Some(change) if change.change.is_infinite() => "from 0".to_owned(),
        Some(change) => percent(Some(100.0 * change.change)),
    }
}

/// Returns the name of the cell that changes most; empty if none does.
fn cell(input: &Moved) -> &str {
    let changes = [&input.halved, &input.doubled].into_iter().flatten();
    let most = changes.max_by(|one, other| one.change.abs().total_cmp(&other.change.abs()));
    most.filter(|most| most.change != 0.0).map_or("", |most| most.cell.as_str())
}

impl fmt::Display for SensitivityFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}")?;
        for table in &self.tables {
            writeln!(f, "\n{}\n{}", table.told(), table.table())?;
        }
        writeln!(f, "Constants in the code. {CONSTANTS}\n{}", self.constants())?;
        write!(f, "{}", self.bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, basis: Option<Basis>, change: f64) -> Moved {
        Moved {
            name: name.to_owned(),
            value: "7".to_owned(),
            basis,
            origin: "an invented source".to_owned(),
            halved: None,
            doubled: Some(Change { cell: "the cell".to_owned(), change }),
            matters: change > MATTERS,
        }
    }

    fn figures(basis: Option<Basis>) -> SensitivityFigures {
        let chance = Change { cell: "another".to_owned(), change: 0.031 };
        let inputs = vec![
            input("strong", basis, 0.42),
            input("weak", None, 0.01),
            input("from nothing", Some(Basis::Assumed), f64::INFINITY),
        ];
        let walk = Walk { cells: 24, chance, inputs };
        SensitivityFigures::new([WalkedTable { table: "invented", walk }])
    }

    #[test]
    fn inputs_are_told_with_what_they_rest_on() {
        let figures = figures(Some(Basis::Fitted));
        let mut page = html::Page::new("a test", "");
        figures.show_on(&mut page);
        let (text, html) = (figures.to_string(), page.render());
        let said = ["strong", "+42.0 %", "fitted", "the cell", "an invented source", "from 0"];
        for said in said.into_iter().chain(["2 of 3 inputs", "1 fitted, 1 assumed", "SEGMENTS"]) {
            assert!(text.contains(said) && html.contains(said), "{said}:\n{text}");
        }
        assert!(figures.bounds.within_bounds, "weak needs not be listed");
    }

    /// Negative control.
    #[test]
    fn an_input_that_matters_and_is_not_listed_breaks_the_bound() {
        let figures = figures(None);
        assert!(!figures.bounds.within_bounds);
        assert!(figures.to_string().contains("not on the list (strong)"), "{figures}");
    }
}
