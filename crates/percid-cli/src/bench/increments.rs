//! `percid bench increments`: one increment with one thread, with two, and so on.

mod picture;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::accounts::AccountReport;
use super::benchmark::Benchmark;
use super::figures::{self, Figure, distinct};
use super::loops;
use super::team::Placement;
use super::titles::title;
use crate::judged::{Judged, Part};
use percid_command::exit::{Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::text_table::{Align, TextTable};

/// The keys of `bench increments` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct IncrementsReport {
    pub(crate) increments_exact: bool,
    increments: Vec<Figure>,
}

/// Measures percid's counter and its competitors until `length` is over or Ctrl-C is pressed. Each
/// thread has its own CPU if there are enough.
pub(crate) fn measure(
    threads: (usize, usize),
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<Judged<IncrementsReport>, Failure> {
    let placement = |threads| match cpus.get(..threads) {
        Some(cpus) => Placement::one_on_each(cpus),
        None => Placement::Anywhere(threads),
    };
    let placements = (threads.0..=threads.1).map(placement).collect();
    let source = percid::init().source;
    let mut benchmark =
        Benchmark::new(placements, cpus, |workers| loops::increments(workers, source))?;
    let circumstances = benchmark.run("bench increments", length, interrupt);
    let report = IncrementsReport {
        increments_exact: AccountReport::all(&benchmark).iter().all(AccountReport::is_exact),
        increments: figures::figures(&benchmark),
    };
    Ok(Judged::new(report, circumstances))
}

impl IncrementsReport {
    /// Writes the picture, unless Ctrl-C came before the first value.
    pub(crate) fn draw(&self, path: &Path, caption: &str) -> Result<(), Failure> {
        if self.increments.is_empty() {
            return Ok(());
        }
        let svg = picture::svg(&self.increments, caption);
        std::fs::write(path, svg)
            .map_err(|cause| Failure::new(format!("cannot write {}", path.display()), cause))?;
        complain(format_args!("picture written to {}", path.display()));
        Ok(())
    }
}

impl Part for IncrementsReport {
    const NAME: &'static str = "increments";
    const TIMES: &'static [&'static str] = figures::TIMES;

    fn counts(&self) -> String {
        let verdict =
            if self.increments_exact { "every count is exact" } else { "A COUNT IS WRONG" };
        format!("  {verdict}\n")
    }
}

impl fmt::Display for IncrementsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "One increment, in nanoseconds, by the number of threads")?;
        let teams = distinct(self.increments.iter().map(|figure| figure.team));
        let columns = teams.iter().map(|team| (team.to_string(), Align::Right));
        let names = ["operation", "op"].map(|name| (name.to_owned(), Align::Left));
        let mut table = TextTable::new(names.into_iter().chain(columns));
        let fastest: fn(&Figure) -> f64 = |figure| figure.ns_min;
        let median: fn(&Figure) -> f64 = |figure| figure.ns_median;
        for (statistic, ns) in [("fastest round", fastest), ("median of the rounds", median)] {
            table.heading(statistic.to_owned());
            for op in distinct(self.increments.iter().map(|figure| figure.op)) {
                let cell = |team| {
                    let is_it = |figure: &&Figure| figure.op == op && figure.team == team;
                    let figure = self.increments.iter().find(is_it);
                    figure.map_or("-".to_owned(), |figure| format!("{:.2}", ns(figure)))
                };
                let names = [title(op).to_owned(), op.to_owned()];
                table.row(names.into_iter().chain(teams.iter().map(|&team| cell(team))).collect());
            }
        }
        write!(f, "{table}{}", self.counts())
    }
}
