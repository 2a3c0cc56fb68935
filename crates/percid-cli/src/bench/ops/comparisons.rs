//! Cost ratios of operations: the comparisons that users ask for most.

use serde::Serialize;

use crate::bench::benchmark::{Benchmark, Series, Subject};
use crate::bench::figures::{TeamName, distinct};
use percid_command::text_table::{Align, TextTable};

/// An operation of percid's and its competitor.
pub(crate) type Comparison = (&'static str, &'static str);

/// One comparison for one source with one team.
#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    op: &'static str,
    source: String,
    to: &'static str,
    #[serde(flatten)]
    team: TeamName,
    /// The median of the ratios of the rounds.
    median: f64,
    /// The smallest value of one over the smallest of the other.
    of_minima: f64,
}

/// Returns the comparisons of which both sides were measured.
pub(crate) fn ratios(benchmark: &Benchmark, comparisons: &[Comparison]) -> Vec<Ratio> {
    let pairs: Vec<_> = comparisons.iter().flat_map(|&names| pairs(benchmark, names)).collect();
    let of_series = |series| pairs.iter().filter_map(move |&pair| ratio(series, pair));
    benchmark.all_series.iter().flat_map(of_series).collect()
}

/// A subject and its position.
type Placed<'c> = (usize, &'c Subject);

/// Pairs every source's `op` with `to`: with that of the same source, if `to` is percid's too.
fn pairs<'c>(
    benchmark: &'c Benchmark,
    (op, to): (&'static str, &'static str),
) -> impl Iterator<Item = (Placed<'c>, Placed<'c>)> {
    let called = move |name| {
        benchmark.subjects.iter().enumerate().filter(move |(_, one)| one.operation.name == name)
    };
    called(op).flat_map(move |mine| {
        let source = mine.1.operation.source;
        called(to)
            .filter(move |(_, other)| other.operation.source.is_none_or(|its| Some(its) == source))
            .map(move |other| (mine, other))
    })
}

/// Returns the ratio; `None` if Ctrl-C came before both were measured in one round.
fn ratio(series: &Series, ((mine, op), (other, to)): (Placed<'_>, Placed<'_>)) -> Option<Ratio> {
    let (mine, other) = (series.column(mine), series.column(other));
    Some(Ratio {
        op: op.operation.name,
        source: op.operation.source_name(),
        to: to.operation.name,
        team: TeamName::of(series),
        median: mine.ratios_to(other).median()?,
        of_minima: mine.ns().min()? / other.ns().min()?,
    })
}

/// Returns a table with a line per comparison, and two columns per team.
pub(crate) fn table(ratios: &[Ratio]) -> TextTable {
    let teams = distinct(ratios.iter().map(|ratio| ratio.team));
    let mut table = TextTable::new(["op", "source", "to"].map(|heading| (heading, Align::Left)));
    for team in &teams {
        let columns = ["of minima", "median"].map(|column| (column, Align::Right));
        table.group(team.to_string(), columns);
    }
    let key = |ratio: &Ratio| (ratio.op, ratio.source.clone(), ratio.to);
    for line in distinct(ratios.iter().map(key)) {
        let cells = teams.iter().flat_map(|&team| {
            let here = ratios.iter().find(|ratio| key(ratio) == line && ratio.team == team);
            here.map_or(["-", "-"].map(str::to_owned), |ratio| {
                [ratio.of_minima, ratio.median].map(times)
            })
        });
        let names = [line.0.to_owned(), line.1.clone(), line.2.to_owned()];
        table.row(names.into_iter().chain(cells).collect());
    }
    table
}

/// Formats a ratio. Ratios to contended operations are small and need more decimals.
fn times(ratio: f64) -> String {
    if ratio < 0.1 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}
