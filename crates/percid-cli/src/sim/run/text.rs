//! The comparison as text.

use std::fmt;

use percid_sim::comparison::{InUse, ProgramRow, Row};
use percid_sim::cost::Class;
use percid_sim::engine::{Quiet, Share, Throttling};

use crate::sim::numbers::{figure, hundredths, optional, settings};
use percid_command::text_table::{Align, TextTable};
use percid_sim::results::Results;

/// The results as text.
pub(super) struct Text<'a>(pub(super) &'a Results);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.0.title())?;
        let parameters = settings(&self.0.workload.parameters);
        if !parameters.is_empty() {
            writeln!(f, "  {parameters}")?;
        }
        let mut table = TextTable::new([
            ("policy", Align::Left),
            ("ns/burst", Align::Right),
            ("min", Align::Right),
            ("max", Align::Right),
        ]);
        table.group("% of bursts".to_owned(), Class::ALL.map(|class| (class.name(), Align::Right)));
        table.group(
            "largest run".to_owned(),
            ["IDs", "bound", "memory kB"].map(|name| (name, Align::Right)),
        );
        table.group(
            "all runs".to_owned(),
            ["steals", "scans", "slow paths", "work %"].map(|name| (name, Align::Right)),
        );
        if self.0.has_quota {
            table.group("quota, all runs".to_owned(), QUOTA.map(|name| (name, Align::Right)));
        }
        add_rows(&mut table, self.0.rows.iter().map(|row| (row, self.cells(row))));
        write!(f, "{table}")?;
        writeln!(
            f,
            "  min, max: means of single runs. IDs, bound, memory: of the run that needed most. \
             work: of the run time"
        )?;
        self.show_programs(f)?;
        self.show_in_use(f)
    }
}

/// Columns of a CPU quota's effects.
const QUOTA: [&str; 3] = ["periods", "throttled", "ms"];

impl Text<'_> {
    /// Writes each program of a workload that lists several.
    fn show_programs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.rows.iter().all(|row| row.programs.is_empty()) {
            return Ok(());
        }
        let mut table = TextTable::new([
            ("policy", Align::Left),
            ("program", Align::Left),
            ("ns/burst", Align::Right),
            ("min", Align::Right),
            ("max", Align::Right),
        ]);
        table.group("% of bursts".to_owned(), Class::ALL.map(|class| (class.name(), Align::Right)));
        let largest = ["IDs", "bound", "memory kB"].map(|name| (name, Align::Right));
        table.group("largest run".to_owned(), largest);
        let all = ["bursts", "run ms"].map(|name| (name, Align::Right));
        table.group("all runs".to_owned(), all);
        if self.0.has_quota {
            table.group("quota, all runs".to_owned(), QUOTA.map(|name| (name, Align::Right)));
        }
        let of_row = |row| move |program| (row, self.program_cells(row, program));
        add_rows(
            &mut table,
            self.0.rows.iter().flat_map(|row| row.programs.iter().map(of_row(row))),
        );
        write!(f, "\n{table}")
    }

    fn program_cells(&self, row: &Row, program: &ProgramRow) -> Vec<String> {
        let mut cells = vec![row.policy.to_owned(), program.name.clone()];
        let costs = [program.ns_per_burst, program.ns_per_burst_min, program.ns_per_burst_max];
        cells.extend(costs.map(optional));
        cells.extend(shares(&program.shares));
        let ids = [program.ids_distinct, program.ids_bound].map(u64::from);
        let counts = ids.into_iter().chain([program.memory / 1000, program.bursts]);
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(figure(program.expense.run_ns as f64 / 1e6));
        if self.0.has_quota {
            cells.extend(throttling(&program.throttling));
        }
        cells
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let mut cells = cells(row);
        if self.0.has_quota {
            cells.extend(throttling(&row.throttling));
        }
        cells
    }

    /// Writes the CPUs and IDs in use while wake-ups were misplaced, and those in the quiet time
    /// after that.
    fn show_in_use(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || self.0.rows.iter().filter_map(|row| Some((row, row.in_use?, row.quiet?)));
        if all().next().is_none() {
            return Ok(());
        }
        let mut table = TextTable::new([("policy", Align::Left)]);
        let level = || ["mean", "most"].map(|name| (name, Align::Right));
        table.group("CPUs at a time".to_owned(), level());
        table.group("CPUs in 100 ms".to_owned(), level());
        table.group("IDs in 100 ms".to_owned(), level());
        let quiet =
            ["IDs", "bound", "above, ms", "asked", "overdue, ms"].map(|name| (name, Align::Right));
        table.group("quiet".to_owned(), quiet);
        add_rows(&mut table, all().map(|(row, in_use, quiet)| (row, usage(row, in_use, quiet))));
        writeln!(f)?;
        write!(f, "{table}")
    }
}

/// Adds rows under a heading for each combination of parameters.
fn add_rows<'a>(table: &mut TextTable, rows: impl Iterator<Item = (&'a Row, Vec<String>)>) {
    let mut heading = String::new();
    for (row, cells) in rows {
        let parameters = settings(&row.parameters);
        if parameters != heading {
            table.heading(parameters.clone());
            heading = parameters;
        }
        table.row(cells);
    }
}

fn usage(row: &Row, in_use: InUse, quiet: Quiet) -> Vec<String> {
    let mut cells = vec![row.policy.to_owned()];
    for level in [in_use.running, in_use.visited, in_use.ids] {
        cells.extend([figure(level.mean), level.most.to_string()]);
    }
    let ms = |ns: u64| figure(ns as f64 / 1e6);
    let [ids, bound, asked] =
        [quiet.ids.into(), quiet.bound.into(), quiet.asked].map(|n: u64| n.to_string());
    let [above, overdue] = [quiet.above_bound_ns, quiet.overdue_ns].map(ms);
    cells.extend([ids, bound, above, asked, overdue]);
    cells
}

/// Returns the percentages of the bursts, by class.
fn shares(shares: &[Share]) -> impl Iterator<Item = String> {
    let of = |at| shares.get(at).map_or("-".to_owned(), |share: &Share| hundredths(share.bursts));
    (0..Class::ALL.len()).map(of)
}

fn throttling(found: &Throttling) -> [String; 3] {
    let ms = figure(found.throttled_ns as f64 / 1e6);
    [found.periods.to_string(), found.throttled.to_string(), ms]
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.policy.to_owned()];
    cells.extend([row.ns_per_burst, row.ns_per_burst_min, row.ns_per_burst_max].map(optional));
    cells.extend(shares(&row.shares));
    let kilobytes = row.memory / 1000;
    let counts = [u64::from(row.ids_distinct), u64::from(row.ids_bound), kilobytes];
    let work = [row.work.steals, row.work.scans, row.work.slow_paths];
    cells.extend(counts.into_iter().chain(work).map(|count| count.to_string()));
    cells.push(optional(row.policy_share.map(|share| 100.0 * share)));
    cells
}
