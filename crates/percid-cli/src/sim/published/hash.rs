//! The published activity sets of the NUMA scan, computed from their thread IDs.

use std::fmt;

use percid_report as html;
use percid_sim::numa::hash::{self, Table as Computed};
use percid_sim::paper::bounds::Bound;
use serde::Serialize;

use crate::sim::bounds::Bounds;
use percid_command::table::{Cell, Table};

/// The keys of this part in the JSON document.
#[derive(Debug, Serialize)]
pub(super) struct HashFigures {
    tables: Vec<Computed>,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

const TITLE: &str =
    "Activity sets of the NUMA scan: how many threads have each of 64 bits, from their thread IDs";

/// The origins of the values.
const ORIGINS: &str = "published: counted by others, in one run each. computed: forecast, from the thread IDs of the \
                       run and the kernel's hash; nothing is fitted.";

impl HashFigures {
    pub(super) fn compute() -> HashFigures {
        let tables = hash::study(&[]).tables;
        // If a bit has more threads than their IDs give it, threads that did not scan are no
        // explanation.
        let bound = |table: &Computed| {
            let name = format!(
                "{}, {}: bits with more threads than computed",
                table.threads.table,
                table.method.name()
            );
            Bound::new(name, f64::from(unexplained(table)), None, Some(0.0))
        };
        let bounds = Bounds::new(tables.iter().map(bound).collect());
        HashFigures { tables, bounds }
    }
}

fn unexplained(table: &Computed) -> u32 {
    let more = |(bit, count): (&u32, &u32)| table.computed.get(bit).unwrap_or(&0) < count;
    table.published.iter().filter(|&row| more(row)).count() as u32
}

/// Returns a table of published and computed values, with a line for each run.
pub(crate) fn runs_table(runs: &[Computed]) -> Table {
    let columns = ["run", "method", "threads", "verdict", "bits computed", "bits published"];
    let mut table = Table::new(columns, 4);
    for run in runs {
        let threads = &run.threads;
        table.row([
            Cell::from(threads.table),
            Cell::from(run.method.name()),
            Cell::from(format!("{}, {}-{}", threads.main, threads.workers.0, threads.workers.1)),
            verdict(run),
            Cell::from(run.computed.len().to_string()),
            Cell::from(run.published.len().to_string()),
        ]);
    }
    table
}

fn verdict(table: &Computed) -> Cell {
    match table.absent {
        Some(0) => Cell::from("every frequency is the published one"),
        Some(absent) => Cell::from(format!("{absent} of the threads did not scan in the run")),
        None => Cell::judged(format!("{} bits are not explained", unexplained(table)), true),
    }
}

impl fmt::Display for HashFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (runs, bounds) = (runs_table(&self.tables), &self.bounds);
        write!(f, "{TITLE}\n{runs}  {ORIGINS}\n\n{bounds}")
    }
}

impl HashFigures {
    pub(super) fn show_on(&self, page: &mut html::Page) {
        page.section("Activity sets", format!("{}\n\n{TITLE}.\n\n{ORIGINS}", self.result()));
        let text = "Equal rows mean that each bit has as many threads as published.";
        page.chart("Threads by bit, computed and published", text, strips(&self.tables));
        runs_table(&self.tables).show_as("Runs", page);
        self.bounds.show_on(page);
    }
}

impl HashFigures {
    pub(super) fn result(&self) -> String {
        let count =
            |is: fn(&Computed) -> bool| self.tables.iter().filter(|table| is(table)).count();
        format!(
            "{} comparisons with published tables: {} with every frequency as published, {} with threads that did \
             not scan in the run, {} with bits that are not explained.",
            self.tables.len(),
            count(|table| table.absent == Some(0)),
            count(|table| table.absent.is_some_and(|absent| absent > 0)),
            count(|table| table.absent.is_none())
        )
    }
}

/// Returns the computed and the published number of threads of each bit.
pub(crate) fn strips(tables: &[Computed]) -> html::Strips {
    let (run, bit) = (html::Axis::new("run and method"), html::Axis::new("bit"));
    let mut strips = html::Strips::new(run, bit, "threads");
    for table in tables {
        strips.group(format!("{}, {}", table.threads.table, table.method.name()));
        for (name, counts) in [("computed", &table.computed), ("published", &table.published)] {
            strips.row(name, (0..64).map(|bit| *counts.get(&bit).unwrap_or(&0)));
        }
    }
    strips
}
