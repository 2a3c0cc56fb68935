//! The result of `percid bench wander`.

use std::fmt;

use serde::Serialize;

use super::subject::{Column, INCREMENTS, Subject};
use crate::bench::samples::Samples;
use crate::judged::Part;
use percid_command::text_table::{Align, TextTable};

/// The keys of `bench wander` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct WanderReport {
    /// `true` if every counter has all that was added to it.
    pub(crate) wander_exact: bool,
    pub(crate) wander: Vec<Row>,
}

/// One counter with one kind of movement. Times in nanoseconds per move and its increments.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    #[serde(rename = "course")]
    pub(crate) movement: &'static str,
    pub(crate) counter: &'static str,
    rounds: usize,
    moves: u64,
    pub(crate) ns_min: f64,
    pub(crate) ns_median: f64,
    /// The median of each round's difference to the moves without increments.
    ns_above_bare: f64,
    /// The same difference to the counter with the kernel's IDs, if there is one.
    ns_above_kernel: Option<f64>,
    slow_paths_per_move: f64,
    steals_per_move: f64,
    slow_paths_per_second: f64,
    /// Maximum number of IDs of the table at the end of a batch.
    ids: u32,
}

/// The name of a kind of movement, and a function that returns its column.
type Movement = (&'static str, fn(&Subject) -> &Column);

const MOVEMENTS: [Movement; 2] =
    [("forced", |subject| &subject.forced), ("pipe", |subject| &subject.pipe)];

impl WanderReport {
    pub(super) fn of(subjects: Vec<Subject>) -> WanderReport {
        let rows = MOVEMENTS.iter().flat_map(|&(movement, column)| {
            let bare = column(&subjects[0]);
            let kernel = subjects.iter().find(|subject| subject.name == "kernel").map(column);
            subjects.iter().filter_map(move |subject| {
                row(movement, subject.name, column(subject), bare, kernel)
            })
        });
        WanderReport {
            wander: rows.collect(),
            wander_exact: subjects.iter().all(Subject::is_exact),
        }
    }
}

impl Row {
    fn times(&self) -> [String; 4] {
        let difference = |ns: f64| format!("{ns:+.0}");
        [
            format!("{:.0}", self.ns_min),
            format!("{:.0}", self.ns_median),
            difference(self.ns_above_bare),
            self.ns_above_kernel.map_or("-".to_owned(), difference),
        ]
    }
}

/// Returns a row; `None` if nothing was measured.
fn row(
    movement: &'static str,
    counter: &'static str,
    column: &Column,
    bare: &Column,
    kernel: Option<&Column>,
) -> Option<Row> {
    let ns: Samples = column.ns.iter().copied().collect();
    let above = |other: &Column| {
        let pairs = column.ns.iter().zip(&other.ns);
        pairs.map(|(mine, other)| mine - other).collect::<Samples>().median()
    };
    let per_move = |count: u64| count as f64 / column.moves as f64;
    Some(Row {
        movement,
        counter,
        rounds: ns.len(),
        moves: column.moves,
        ns_min: ns.min()?,
        ns_median: ns.median()?,
        ns_above_bare: above(bare)?,
        ns_above_kernel: kernel.and_then(above),
        slow_paths_per_move: per_move(column.slow_paths),
        steals_per_move: per_move(column.steals),
        slow_paths_per_second: column.slow_paths as f64 / column.seconds,
        ids: column.ids,
    })
}

impl fmt::Display for WanderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "A thread on another CPU than before, and {INCREMENTS} increments there, in nanoseconds per move"
        )?;
        write!(f, "{}", self.text(true))
    }
}

impl Part for WanderReport {
    const NAME: &'static str = "wander";
    const TIMES: &'static [&'static str] =
        &["ns_min", "ns_median", "ns_above_bare", "ns_above_kernel", "slow_paths_per_second"];

    fn counts(&self) -> String {
        self.text(false)
    }
}

impl WanderReport {
    fn text(&self, with_times: bool) -> String {
        if self.wander.is_empty() {
            return "  nothing measured: a single CPU is allowed, or Ctrl-C or the end came first\n"
                .to_owned();
        }
        let verdict = if self.wander_exact { "every count is exact" } else { "A COUNT IS WRONG" };
        format!("{}  {verdict}\n", self.table(with_times))
    }

    fn table(&self, with_times: bool) -> TextTable {
        let times: &[&str] = match with_times {
            true => &["min", "median", "above bare", "above kernel"],
            false => &[],
        };
        let right = times.iter().chain(&["slow paths", "steals", "IDs"]);
        let columns = [("move", Align::Left), ("counter", Align::Left)];
        let mut table = TextTable::new(
            columns.into_iter().chain(right.map(|heading| (*heading, Align::Right))),
        );
        for row in &self.wander {
            let mut cells = vec![row.movement.to_owned(), row.counter.to_owned()];
            if with_times {
                cells.extend(row.times());
            }
            cells.extend([
                format!("{:.4}", row.slow_paths_per_move),
                format!("{:.4}", row.steals_per_move),
                row.ids.to_string(),
            ]);
            table.row(cells);
        }
        table
    }
}
