//! The comparison as text.

use std::fmt;

use percid_sim::comparison::Row;
use percid_sim::cost::Class;

use super::figures::{Results, settings};
use crate::sim::numbers::{hundredths, optional};
use percid_command::table::{Align, Table};

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title())?;
        let parameters = settings(&self.workload.parameters);
        if !parameters.is_empty() {
            writeln!(f, "  {parameters}")?;
        }
        let mut table = Table::new([
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
            ["steals", "scans", "slow paths"].map(|name| (name, Align::Right)),
        );
        let mut heading = String::new();
        for row in &self.rows {
            let parameters = settings(&row.parameters);
            if parameters != heading {
                table.heading(parameters.clone());
                heading = parameters;
            }
            table.row(cells(row));
        }
        write!(f, "{table}")?;
        writeln!(
            f,
            "  min, max: means of single runs. IDs, bound, memory: of the run that needed most"
        )
    }
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.policy.to_owned()];
    cells.extend([row.ns_per_burst, row.ns_per_burst_min, row.ns_per_burst_max].map(optional));
    cells.extend(Class::ALL.iter().enumerate().map(|(at, _)| {
        row.shares.get(at).map_or("-".to_owned(), |share| hundredths(share.bursts))
    }));
    let kilobytes = row.memory / 1000;
    let counts = [u64::from(row.ids_distinct), u64::from(row.ids_bound), kilobytes];
    let work = [row.work.steals, row.work.scans, row.work.slow_paths];
    cells.extend(counts.into_iter().chain(work).map(|count| count.to_string()));
    cells
}
