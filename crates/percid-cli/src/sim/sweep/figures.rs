//! Result of a sweep: the JSON document, and the text.

use std::fmt;
use std::path::Path;

use percid_command::table::{Cell, Table};
use percid_sweep::{CellSummary, Plan, RunCounts};
use serde::Serialize;

use crate::sim::numbers::{optional, settings};

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

    fn show_rows(&self, rows: &[CellSummary], f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        write!(f, "{table}")?;
        writeln!(f, "  +-: half of the 95 % interval of the mean")?;
        match rows.len().checked_sub(MOST_LINES) {
            Some(more) if more > 0 => writeln!(f, "  and {more} combinations more"),
            _ => Ok(()),
        }
    }
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
