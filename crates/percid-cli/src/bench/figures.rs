//! The measurements of a benchmark: one value per operation and team, for JSON and as a table.

use std::fmt;

use serde::Serialize;

use super::benchmark::{Benchmark, PLAIN, Series, Subject};
use super::loops::Family;
use super::titles::title;
use percid_command::text_table::{Align, TextTable};

/// Keys of the JSON document that are times, or are computed from times.
pub(super) const TIMES: &[&str] = &["ns_min", "ns_median", "ratio_to_plain_add"];

/// One operation with one team. Times in nanoseconds per operation.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    #[serde(skip)]
    pub(crate) family: Family,
    pub(crate) op: &'static str,
    title: &'static str,
    pub(crate) source: String,
    #[serde(flatten)]
    pub(crate) team: TeamName,
    pub(crate) rounds: usize,
    pub(crate) ns_min: f64,
    pub(crate) ns_median: f64,
    ratio_to_plain_add: Option<f64>,
    /// Number of batches discarded because a thread was preempted.
    discarded: u64,
}

/// The properties that distinguish teams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct TeamName {
    pub(crate) threads: usize,
    pub(crate) pinned: bool,
}

impl TeamName {
    pub(crate) fn of(series: &Series) -> Self {
        TeamName { threads: series.placement.threads(), pinned: series.placement.pinned() }
    }
}

impl fmt::Display for TeamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.threads, self.pinned) {
            (1, false) => write!(f, "1 thread"),
            (threads, true) => write!(f, "{threads} pinned"),
            (threads, false) => write!(f, "{threads} unpinned"),
        }
    }
}

#[cfg(test)]
impl Figure {
    /// Creates a figure of rounds that all took the same time.
    pub(crate) fn fixed(op: &'static str, source: &str, team: TeamName, ns: f64) -> Self {
        Figure {
            family: Family::Counters,
            op,
            title: title(op),
            source: source.to_owned(),
            team,
            rounds: 40,
            ns_min: ns,
            ns_median: ns,
            ratio_to_plain_add: None,
            discarded: 0,
        }
    }
}

/// Returns the figures of all operations, team by team.
pub(crate) fn figures(benchmark: &Benchmark) -> Vec<Figure> {
    let subjects = || benchmark.subjects.iter().enumerate();
    let of_series = |series| subjects().filter_map(move |subject| figure(series, subject));
    benchmark.all_series.iter().flat_map(of_series).collect()
}

/// Returns a figure; `None` if Ctrl-C came before the first sample.
fn figure(series: &Series, (position, subject): (usize, &Subject)) -> Option<Figure> {
    let column = series.column(position);
    let ns = column.ns();
    Some(Figure {
        family: subject.operation.family,
        op: subject.operation.name,
        title: title(subject.operation.name),
        source: subject.operation.source_name(),
        team: TeamName::of(series),
        rounds: ns.len(),
        ns_min: ns.min()?,
        ns_median: ns.median()?,
        ratio_to_plain_add: column.ratios_to(series.column(PLAIN)).median(),
        discarded: column.discarded,
    })
}

/// Returns a table with a line per operation, grouped by family, and three columns per team.
pub(crate) fn table(figures: &[Figure]) -> TextTable {
    let teams = distinct(figures.iter().map(|figure| figure.team));
    let mut table =
        TextTable::new(["operation", "op", "source"].map(|heading| (heading, Align::Left)));
    for team in &teams {
        let columns = ["min", "median", "x"].map(|column| (column, Align::Right));
        table.group(team.to_string(), columns);
    }
    let mut family = None;
    for (op, source) in distinct(figures.iter().map(|figure| (figure.op, &figure.source))) {
        let line: Vec<&Figure> =
            figures.iter().filter(|figure| figure.op == op && figure.source == *source).collect();
        let here = line.first().map(|figure| figure.family);
        if let Some(heading) = here.filter(|_| here != family) {
            table.heading(heading.to_string());
            family = here;
        }
        let cells = teams.iter().flat_map(|&team| cells(&line, team));
        let names = [title(op).to_owned(), op.to_owned(), source.clone()];
        table.row(names.into_iter().chain(cells).collect());
    }
    table
}

fn cells(line: &[&Figure], team: TeamName) -> [String; 3] {
    let Some(figure) = line.iter().find(|figure| figure.team == team) else {
        return ["-", "-", "-"].map(str::to_owned);
    };
    let ratio = figure.ratio_to_plain_add.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    [format!("{:.3}", figure.ns_min), format!("{:.3}", figure.ns_median), ratio]
}

/// Returns each item once, in the order of first appearance.
pub(crate) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
