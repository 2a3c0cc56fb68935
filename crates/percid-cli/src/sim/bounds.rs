//! Bounds around published values, and a check of the simulated values.

use std::fmt;

use percid_report::Page;
use percid_sim::paper::bounds::Bound;
use serde::Serialize;

use super::numbers::{figure, optional};
use percid_command::table::{Cell, Table};

/// The keys of every part of `sim published` about its bounds.
#[derive(Debug, Serialize)]
pub(crate) struct Bounds {
    pub(crate) within_bounds: bool,
    bounds: Vec<Bound>,
}

impl Bounds {
    pub(crate) fn new(bounds: Vec<Bound>) -> Bounds {
        Bounds { within_bounds: bounds.iter().all(|bound| bound.holds), bounds }
    }

    /// Adds more bounds.
    pub(crate) fn and(mut self, more: Vec<Bound>) -> Bounds {
        self.bounds.extend(more);
        Bounds::new(self.bounds)
    }

    /// Returns the number of bounds that hold, and of all.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.bounds.iter().filter(|bound| bound.holds).count(), self.bounds.len())
    }

    /// Returns the number of values that are out of bounds, in words.
    pub(crate) fn verdict(&self) -> String {
        match self.counts() {
            (held, all) if held == all => format!("All {all} bounds hold."),
            (held, all) => format!("FAILED: {} of {all} bounds do not hold.", all - held),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["bound", "figure", "least", "most"], 1);
        for bound in &self.bounds {
            table.row([
                Cell::from(bound.name.as_str()),
                Cell::judged(figure(bound.figure), !bound.holds),
                Cell::from(optional(bound.least)),
                Cell::from(optional(bound.most)),
            ]);
        }
        table
    }

    pub(crate) fn show_on(&self, page: &mut Page) {
        page.subsection("Bounds", self.verdict());
        self.table().show_on(page);
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {}", self.table(), self.verdict())
    }
}
