//! Result of a sweep: the JSON document, and the text.

use std::fmt;
use std::path::Path;

use percid_command::report;
use percid_command::table::{Cell, Table};
use percid_report::{Axis, Dot, Dots, Page};
use percid_sweep::{CellSummary, Plan, RunCounts};
use serde::Serialize;

use crate::sim::numbers::{optional, settings};
use crate::sim::span;

/// Maximum number of lines of text; all combinations are in JSON and, run by run, in the table.
const MOST_LINES: usize = 100;

/// The document of `percid sim sweep --json`.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) store: String,
    combinations: usize,
    /// `None` if nothing was to be simulated.
    runs: Option<Runs>,
    /// Number of units that do not exist yet.
    pub(super) missing: usize,
    #[serde(skip)]
    pub(super) first_missing: Option<String>,
    /// `None` if this was a share of the sweep, or the sweep is not complete.
    pub(super) rows: Option<Vec<CellSummary>>,
    pub(super) failures: Vec<FailedUnit>,
    /// The file with all runs, if it was written.
    pub(super) table: Option<String>,
    pub(super) interrupted: bool,
}

/// Numbers of runs by their outcome.
#[derive(Debug, Serialize)]
struct Runs {
    found: u64,
    computed: u64,
    failed: u64,
    left: u64,
}

/// A unit that could not be computed.
#[derive(Debug, Serialize)]
pub(super) struct FailedUnit {
    pub(super) unit: String,
    pub(super) why: String,
}

impl Results {
    pub(super) fn new(store: &Path, plan: &Plan, counts: RunCounts) -> Results {
        let RunCounts { found, done, failed, left } = counts;
        let runs = Some(Runs { found, computed: done, failed, left });
        Results { runs, ..Results::of_store(store, plan) }
    }

    pub(super) fn of_store(store: &Path, plan: &Plan) -> Results {
        Results {
            store: store.display().to_string(),
            combinations: plan.cells(),
            runs: None,
            missing: 0,
            first_missing: None,
            rows: None,
            failures: Vec::new(),
            table: None,
            interrupted: false,
        }
    }

    /// Returns a table of the first combinations.
    fn table(rows: &[CellSummary]) -> Table {
        let columns = ["machine", "workload", "parameters", "policy", "ns/burst", "+-", "runs"];
        let mut table = Table::new(columns, 4);
        for row in rows.iter().take(MOST_LINES) {
            table.row([
                Cell::from(row.machine.as_str()),
                Cell::from(row.workload.as_str()),
                Cell::from(settings(&row.parameters)),
                Cell::from(row.policy.as_str()),
                Cell::from(optional(row.ns_per_burst)),
                Cell::from(optional(row.half_interval_ns)),
                Cell::from(row.runs.to_string()),
            ]);
        }
        table
    }

    pub(super) fn page(&self) -> Page {
        let rows = self.rows.as_deref().unwrap_or_default();
        let means = rows.iter().filter_map(|row| Some((name(row), row.ns_per_burst?)));
        let verdict = span::sentence("Time per burst", " ns", means).unwrap_or_else(|| {
            let done = self.runs.as_ref().map_or(0, |runs| runs.found + runs.computed);
            format!("{done} runs of {} combinations are in the store.", self.combinations)
        });
        let what = format!("{}: {} combinations.", self.store, self.combinations);
        let mut page = report::page("percid sim sweep", verdict, &what, self.interrupted);
        if !rows.is_empty() {
            let text = "A dot is the mean, the line its 95 % interval.";
            page.chart("Time per burst", text, dots(rows));
            page.section("All combinations", format!("{} rows.", rows.len().min(MOST_LINES)));
            Results::table(rows).show_on(&mut page);
        }
        page.section("All that was found", "").printed(self.to_string().trim_end());
        page
    }

    fn show_rows(&self, rows: &[CellSummary], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Results::table(rows))?;
        writeln!(f, "  +-: half of the 95 % interval of the mean")?;
        match rows.len().checked_sub(MOST_LINES) {
            Some(more) if more > 0 => writeln!(f, "  and {more} combinations more"),
            _ => Ok(()),
        }
    }
}

/// Returns the name of a combination.
fn name(row: &CellSummary) -> String {
    let parameters = settings(&row.parameters);
    let parts = [&row.policy, &row.workload, &row.machine, &parameters].map(String::as_str);
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn dots(rows: &[CellSummary]) -> Dots {
    let ns = Axis::new("time per burst").unit("ns").logarithmic();
    let mut dots = Dots::new(Axis::new("combination"), ns, ["mean"]).notes(["mean", "+-"]);
    for row in rows.iter().take(MOST_LINES) {
        let dot = Dot::new([row.ns_per_burst]);
        let interval = row.ns_per_burst.zip(row.half_interval_ns);
        let dot = interval.map_or(dot.clone(), |(mean, half)| dot.range(mean - half, mean + half));
        let notes = [row.ns_per_burst, row.half_interval_ns].map(optional);
        dots.row(name(row), [notes.into_iter().fold(dot, Dot::note)]);
    }
    dots
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} combinations", self.store, self.combinations)?;
        match &self.runs {
            Some(Runs { found, computed, failed, left }) => writeln!(
                f,
                ", runs: {found} found, {computed} computed, {failed} failed, {left} left"
            )?,
            None => writeln!(f)?,
        }
        if let Some(rows) = &self.rows {
            self.show_rows(rows, f)?;
        }
        match (&self.table, &self.first_missing) {
            (Some(table), _) => writeln!(f, "all runs are in {table}"),
            (None, Some(first)) => writeln!(
                f,
                "{} files are missing, the first one is {first}; there is no table before they \
                 are there",
                self.missing
            ),
            _ => Ok(()),
        }
    }
}
