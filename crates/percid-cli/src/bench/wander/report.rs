//! The result of `percid bench wander`.

use std::fmt;

use serde::Serialize;

use super::{Contender, INCREMENTS, Lane};
use crate::bench::samples::Samples;
use percid_command::table::{Align, Table};

/// The keys of `bench wander` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct WanderReport {
    /// Every counter has all that was added to it.
    pub(crate) wander_exact: bool,
    wander: Vec<Row>,
}

/// One counter on one course. Times in nanoseconds per move and its increments.
#[derive(Debug, Serialize)]
struct Row {
    course: &'static str,
    counter: &'static str,
    rounds: usize,
    moves: u64,
    ns_min: f64,
    ns_median: f64,
    /// The median of each round's own difference to the bare moves.
    ns_above_bare: f64,
    /// The same to the counter with the kernel's IDs, where there is one.
    ns_above_kernel: Option<f64>,
    slow_paths_per_move: f64,
    steals_per_move: f64,
    slow_paths_per_second: f64,
    /// The most IDs of the table at the end of a batch.
    ids: u32,
}

/// A course, and where its batches are.
type Course = (&'static str, fn(&Contender) -> &Lane);

const COURSES: [Course; 2] =
    [("forced", |contender| &contender.march), ("pipe", |contender| &contender.pipes)];

impl WanderReport {
    pub(super) fn of(contenders: Vec<Contender>) -> WanderReport {
        let rows = COURSES.iter().flat_map(|&(course, lane)| {
            let bare = lane(&contenders[0]);
            let kernel = contenders.iter().find(|contender| contender.name == "kernel").map(lane);
            contenders.iter().filter_map(move |contender| {
                row(course, contender.name, lane(contender), bare, kernel)
            })
        });
        WanderReport {
            wander: rows.collect(),
            wander_exact: contenders.iter().all(Contender::is_exact),
        }
    }
}

/// `None` where nothing was measured.
fn row(
    course: &'static str,
    counter: &'static str,
    lane: &Lane,
    bare: &Lane,
    kernel: Option<&Lane>,
) -> Option<Row> {
    let ns: Samples = lane.ns.iter().copied().collect();
    let above = |other: &Lane| {
        let pairs = lane.ns.iter().zip(&other.ns);
        pairs.map(|(mine, other)| mine - other).collect::<Samples>().median()
    };
    let per_move = |count: u64| count as f64 / lane.moves as f64;
    Some(Row {
        course,
        counter,
        rounds: ns.len(),
        moves: lane.moves,
        ns_min: ns.min()?,
        ns_median: ns.median()?,
        ns_above_bare: above(bare)?,
        ns_above_kernel: kernel.and_then(above),
        slow_paths_per_move: per_move(lane.slow_paths),
        steals_per_move: per_move(lane.steals),
        slow_paths_per_second: lane.slow_paths as f64 / lane.seconds,
        ids: lane.ids,
    })
}

impl fmt::Display for WanderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "A thread on another CPU than before, and {INCREMENTS} increments there, in nanoseconds per move"
        )?;
        if self.wander.is_empty() {
            return writeln!(
                f,
                "  nothing measured: a single CPU is allowed, or Ctrl-C came first"
            );
        }
        write!(f, "{}", self.table())?;
        let verdict = if self.wander_exact { "every count is exact" } else { "A COUNT IS WRONG" };
        writeln!(f, "  {verdict}")
    }
}

impl WanderReport {
    fn table(&self) -> Table {
        let right = ["min", "median", "above bare", "above kernel", "slow paths", "steals", "IDs"];
        let columns = [("move", Align::Left), ("counter", Align::Left)];
        let mut table =
            Table::new(columns.into_iter().chain(right.map(|heading| (heading, Align::Right))));
        for row in &self.wander {
            let difference = |ns: f64| format!("{ns:+.0}");
            table.row(vec![
                row.course.to_owned(),
                row.counter.to_owned(),
                format!("{:.0}", row.ns_min),
                format!("{:.0}", row.ns_median),
                difference(row.ns_above_bare),
                row.ns_above_kernel.map_or("-".to_owned(), difference),
                format!("{:.4}", row.slow_paths_per_move),
                format!("{:.4}", row.steals_per_move),
                row.ids.to_string(),
            ]);
        }
        table
    }
}
