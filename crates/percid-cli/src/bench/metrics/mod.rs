//! `percid bench metrics`: one update of a metric, through the interfaces that programs use.

mod sizes;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use sizes::Size;

use super::accounts::AccountReport;
use super::benchmark::Benchmark;
use super::figures::{self, TeamName};
use super::loops;
use super::team::Placement;
use crate::judged::{Judged, Part};
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::text_table::{Align, TextTable};

/// Number of threads of the team that the scheduler places.
const MANY: usize = 8;

/// The keys of `bench metrics` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct MetricsReport {
    /// `true` if every update that can be counted was counted.
    pub(crate) metrics_exact: bool,
    pub(crate) results: Vec<Row>,
    pub(crate) sizes: Vec<Size>,
}

/// One operation of one peer with one team. Times in nanoseconds per operation.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    op: &'static str,
    peer: &'static str,
    #[serde(flatten)]
    team: TeamName,
    rounds: usize,
    ns_min: f64,
    ns_median: f64,
}

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<Judged<MetricsReport>, Failure> {
    let two = &cpus[..cpus.len().min(2)];
    let mut placements =
        vec![Placement::Anywhere(1), Placement::one_on_each(two), Placement::Anywhere(MANY)];
    placements.dedup();
    let sizes = sizes::measure(cpus);
    let mut benchmark = Benchmark::new(placements, cpus, |_| loops::metrics_operations())?;
    let circumstances = benchmark.run("bench metrics", length, interrupt);
    Ok(Judged::new(MetricsReport::of(&benchmark, sizes), circumstances))
}

impl MetricsReport {
    fn of(benchmark: &Benchmark, sizes: Vec<Size>) -> MetricsReport {
        let row = |figure: figures::Figure| {
            // `plain_add`, the reference of the others, has no peer.
            let (op, peer) = figure.op.split_once(' ').unwrap_or((figure.op, "none"));
            let figures::Figure { team, rounds, ns_min, ns_median, .. } = figure;
            Row { op, peer, team, rounds, ns_min, ns_median }
        };
        MetricsReport {
            metrics_exact: AccountReport::all(benchmark).iter().all(AccountReport::is_exact),
            results: figures::figures(benchmark).into_iter().map(row).collect(),
            sizes,
        }
    }

    fn table(&self) -> TextTable {
        let mut teams: Vec<TeamName> = self.results.iter().map(|row| row.team).collect();
        teams.dedup();
        let mut table = TextTable::new([("", Align::Left)]);
        for team in &teams {
            table.group(team.to_string(), ["min", "median"].map(|it| (it, Align::Right)));
        }
        let first = teams.first().copied();
        let mut op = "";
        for row in self.results.iter().filter(|row| Some(row.team) == first) {
            if row.op != op {
                table.heading(row.op.to_owned());
                op = row.op;
            }
            let same = |team: &TeamName| {
                let is_it = |other: &&Row| {
                    other.team == *team && other.op == row.op && other.peer == row.peer
                };
                let found = self.results.iter().find(is_it);
                let cell = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| format!("{ns:.2}"));
                [cell(found.map(|it| it.ns_min)), cell(found.map(|it| it.ns_median))]
            };
            let cells = teams.iter().flat_map(same);
            table.row([row.peer.to_owned()].into_iter().chain(cells).collect());
        }
        table
    }
}

impl Part for MetricsReport {
    const NAME: &'static str = "metrics";
    const TIMES: &'static [&'static str] = figures::TIMES;

    fn counts(&self) -> String {
        let verdict = if self.metrics_exact { "every count is exact" } else { "A COUNT IS WRONG" };
        format!("  {verdict}\n\n{}", sizes::table(&self.sizes))
    }
}

impl fmt::Display for MetricsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "One update of a metric, in nanoseconds")?;
        write!(f, "{}{}", self.table(), self.counts())
    }
}
