//! The rows of a comparison as columns, for tables that other programs read.

use std::collections::BTreeSet;

use crate::comparison::{Level, ProgramRow, Row};
use crate::cost::Class;
use crate::engine::Share;

/// The values of a column, one per row; `None` if the row has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Names.
    Text(Vec<String>),
    /// Whole numbers.
    Count(Vec<Option<u64>>),
    /// Other numbers.
    Number(Vec<Option<f64>>),
}

impl Values {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Count(values) => values.len(),
            Values::Number(values) => values.len(),
        }
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The path of keys in the JSON of `percid sim run`, joined by dots.
    pub name: String,
    /// Values of the column, row by row.
    pub values: Values,
}

/// Returns all columns: first `head`, which describes the rows, then the swept parameters, then the
/// results. Units are in the column names; otherwise they are the units of [`Row`]'s fields.
pub fn columns(head: Vec<Column>, rows: &[Row]) -> Vec<Column> {
    let mut table = Table { rows, columns: head };
    let swept: BTreeSet<&String> = rows.iter().flat_map(|row| row.parameters.keys()).collect();
    for name in swept {
        table.number(&format!("parameters.{name}"), |row| row.parameters.get(name).copied());
    }
    table.text("policy", |row| row.policy.to_owned());
    table.costs();
    table.usage();
    table.events();
    table.levels();
    table.programs();
    table.columns
}

struct Table<'a> {
    rows: &'a [Row],
    columns: Vec<Column>,
}

impl Table<'_> {
    fn add(&mut self, name: &str, values: Values) {
        self.columns.push(Column { name: name.to_owned(), values });
    }

    fn text(&mut self, name: &str, of: impl Fn(&Row) -> String) {
        self.add(name, Values::Text(self.rows.iter().map(of).collect()));
    }

    fn count(&mut self, name: &str, of: impl Fn(&Row) -> Option<u64>) {
        self.add(name, Values::Count(self.rows.iter().map(of).collect()));
    }

    fn number(&mut self, name: &str, of: impl Fn(&Row) -> Option<f64>) {
        self.add(name, Values::Number(self.rows.iter().map(of).collect()));
    }

    fn costs(&mut self) {
        self.count("runs", |row| Some(row.runs));
        self.number("ns_per_burst", |row| row.ns_per_burst);
        self.number("ns_per_burst_min", |row| row.ns_per_burst_min);
        self.number("ns_per_burst_max", |row| row.ns_per_burst_max);
        for class in Class::ALL {
            let of = |row: &Row| -> Option<Share> {
                row.shares.iter().find(|share| share.class == class).copied()
            };
            let name = class.name().to_lowercase().replace(' ', "_");
            self.number(&format!("shares.{name}.bursts"), |row| Some(of(row)?.bursts));
            self.number(&format!("shares.{name}.cost"), |row| Some(of(row)?.cost));
        }
    }

    fn usage(&mut self) {
        self.count("bursts", |row| Some(row.bursts));
        self.count("ids_distinct", |row| Some(row.ids_distinct.into()));
        self.count("ids_bound", |row| Some(row.ids_bound.into()));
        self.count("memory_bytes", |row| Some(row.memory));
    }

    fn events(&mut self) {
        self.count("work.steals", |row| Some(row.work.steals));
        self.count("work.scans", |row| Some(row.work.scans));
        self.count("work.expired", |row| Some(row.work.expired));
        self.count("work.slow_paths", |row| Some(row.work.slow_paths));
        self.count("scheduling.wakes", |row| Some(row.scheduling.wakes));
        self.count("scheduling.switches", |row| Some(row.scheduling.switches));
        self.count("scheduling.ticks", |row| Some(row.scheduling.ticks));
        self.count("scheduling.migrations", |row| Some(row.scheduling.migrations));
        self.count("expense.run_ns", |row| Some(row.expense.run_ns));
        self.count("expense.work_ns", |row| Some(row.expense.work_ns));
        self.count("expense.timed_work_ns", |row| Some(row.expense.timed_work_ns));
        self.count("expense.interrupts", |row| Some(row.expense.interrupts));
        self.count("expense.interrupted_ns", |row| Some(row.expense.interrupted_ns));
        self.count("throttling.periods", |row| Some(row.throttling.periods));
        self.count("throttling.throttled", |row| Some(row.throttling.throttled));
        self.count("throttling.throttled_ns", |row| Some(row.throttling.throttled_ns));
        self.number("policy_share", |row| row.policy_share);
        self.count("elapsed_ns", |row| Some(row.elapsed_ns));
    }

    /// Adds the columns of each program. All rows have the same programs in the same order.
    fn programs(&mut self) {
        type Count = fn(&ProgramRow) -> u64;
        let Some(first) = self.rows.first() else { return };
        for (at, program) in first.programs.iter().enumerate() {
            let name = |field: &str| format!("programs.{}.{field}", program.name);
            self.number(&name("ns_per_burst"), |row| row.programs[at].ns_per_burst);
            self.number(&name("ns_per_burst_min"), |row| row.programs[at].ns_per_burst_min);
            self.number(&name("ns_per_burst_max"), |row| row.programs[at].ns_per_burst_max);
            let counts: [(&str, Count); 7] = [
                ("bursts", |program| program.bursts),
                ("ids_distinct", |program| program.ids_distinct.into()),
                ("ids_bound", |program| program.ids_bound.into()),
                ("memory_bytes", |program| program.memory),
                ("expense.run_ns", |program| program.expense.run_ns),
                ("throttling.throttled", |program| program.throttling.throttled),
                ("throttling.throttled_ns", |program| program.throttling.throttled_ns),
            ];
            for (field, of) in counts {
                self.count(&name(field), |row| Some(of(&row.programs[at])));
            }
        }
    }

    fn levels(&mut self) {
        type Of = fn(&Row) -> Option<Level>;
        let levels: [(&str, Of); 3] = [
            ("running", |row| Some(row.in_use?.running)),
            ("visited", |row| Some(row.in_use?.visited)),
            ("ids", |row| Some(row.in_use?.ids)),
        ];
        for (name, of) in levels {
            self.number(&format!("in_use.{name}.mean"), |row| Some(of(row)?.mean));
            self.count(&format!("in_use.{name}.most"), |row| Some(of(row)?.most.into()));
        }
        self.count("quiet.ids", |row| Some(row.quiet?.ids.into()));
        self.count("quiet.bound", |row| Some(row.quiet?.bound.into()));
        self.count("quiet.above_bound_ns", |row| Some(row.quiet?.above_bound_ns));
        self.count("quiet.asked", |row| Some(row.quiet?.asked));
        self.count("quiet.overdue_ns", |row| Some(row.quiet?.overdue_ns));
    }
}
