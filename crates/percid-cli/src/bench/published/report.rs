//! The rows of the published benchmark: measured, published and forecast.

use std::fmt;

use percid_command::table::Table;
use serde::Serialize;

use super::forecast::Forecast;
use super::index::PublishedIndex;
use crate::bench::intermittent::Selection;
use crate::busy::Noise;
use crate::judged::{Circumstances, NoiseOf};
use crate::machine::wrapped;

/// The key `published` of the JSON document. Times in nanoseconds per burst.
#[derive(Debug, Serialize)]
pub(crate) struct PublishedReport {
    /// Planned number of repetitions of each row.
    pub(super) repetitions: u64,
    pub(super) bursts: u64,
    pub(super) warmup: u64,
    pub(super) prefaulted: bool,
    pub(super) seed: u64,
    /// The generation of this kernel's own IDs, and how it was determined.
    pub(super) kernel_ids: Option<String>,
    pub(super) kernel_ids_known: &'static str,
    /// Cost of a hot burst on the published machine and here.
    pub(super) published_hot_ns: f64,
    pub(super) here_hot_ns: f64,
    pub(super) parts: Vec<Part>,
    pub(super) rows: Vec<Row>,
    /// Errors of `forecast_ns`; `null` without rows.
    pub(super) forecast: Option<Errors>,
    /// Errors of `with_hot_ns`.
    pub(super) with_hot: Option<Errors>,
    /// The largest noise of these processes.
    #[serde(skip)]
    pub(super) circumstances: Circumstances,
}

/// A part of the machine, and a flag for its measurement.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    #[serde(flatten)]
    pub(super) selection: Selection,
    /// The part of the published table that it corresponds to.
    pub(super) published: &'static str,
    /// `false` if the part has a single CPU, or the same CPUs as an earlier part.
    pub(super) measured: bool,
}

/// One index in one part of the machine with one delay.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) part: String,
    /// This machine's part, in the form of published tables.
    pub(super) shape: String,
    /// The part of the published table.
    pub(super) published_part: &'static str,
    pub(super) delay_ms: u64,
    pub(super) threads: usize,
    pub(super) index: &'static str,
    /// The policy of the simulator that forecasts it.
    pub(super) policy: &'static str,
    /// Number of finished repetitions.
    pub(super) repetitions: usize,
    /// The mean of the repetitions; `null` if Ctrl-C came before the first was finished.
    pub(super) measured_ns: Option<f64>,
    pub(super) measured_min_ns: Option<f64>,
    pub(super) measured_max_ns: Option<f64>,
    /// Means over the repetitions.
    pub(super) hot_ns: Option<f64>,
    pub(super) later_ns: Option<f64>,
    pub(super) minor_faults_per_burst: Option<f64>,
    pub(super) indices_per_cpu_max: Option<u64>,
    /// The column of the published table that `published_ns` is from.
    pub(super) published_column: Option<&'static str>,
    /// `null` for a delay that was not published.
    pub(super) published_ns: Option<f64>,
    pub(super) forecast_ns: f64,
    /// `forecast_ns / measured_ns - 1`.
    pub(super) forecast_error: Option<f64>,
    pub(super) with_hot_ns: f64,
    pub(super) with_hot_error: Option<f64>,
}

/// Measurements of one repetition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) ns_per_burst: f64,
    pub(super) ns_hot: f64,
    pub(super) ns_later: f64,
    pub(super) minor_faults_per_burst: f64,
    pub(super) indices_per_cpu_max: u64,
}

/// Relative differences between forecasts and measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Errors {
    /// The mean of the absolute errors.
    pub(super) mean_error: f64,
    /// The error with the largest absolute value.
    pub(super) worst_error: f64,
}

impl Errors {
    fn of(errors: impl Iterator<Item = Option<f64>>) -> Option<Errors> {
        let errors: Vec<f64> = errors.flatten().collect();
        let worst_error = errors.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
        let sum: f64 = errors.iter().map(|error| error.abs()).sum();
        Some(Errors { mean_error: sum / errors.len() as f64, worst_error })
    }
}

impl PublishedReport {
    const NAME: &'static str = "published";

    /// Adds the circumstances of one process.
    pub(super) fn note(&mut self, found: Circumstances) {
        let most = |noise: &Noise| noise.runnable_threads;
        let Circumstances { noise, partial } = self.circumstances;
        let noise = noise.into_iter().chain(found.noise).max_by_key(most);
        self.circumstances = Circumstances { noise, partial: partial || found.partial };
    }

    pub(crate) fn noise(&self) -> Option<NoiseOf> {
        self.circumstances.noise.map(|noise| NoiseOf::new(Self::NAME, noise))
    }

    pub(crate) fn partial(&self) -> Option<&'static str> {
        self.circumstances.partial.then_some(Self::NAME)
    }

    /// Computes the errors of the rows.
    pub(super) fn sum_up(&mut self) {
        self.forecast = Errors::of(self.rows.iter().map(|row| row.forecast_error));
        self.with_hot = Errors::of(self.rows.iter().map(|row| row.with_hot_error));
    }
}

impl Row {
    pub(super) fn new(
        part: &Part,
        delay_ms: u64,
        index: &PublishedIndex,
        forecast: Forecast,
    ) -> Row {
        Row {
            part: part.selection.name.clone(),
            shape: part.selection.shape.clone(),
            published_part: part.published,
            delay_ms,
            threads: part.selection.cpus.len(),
            index: index.name,
            policy: index.policy.name,
            repetitions: 0,
            measured_ns: None,
            measured_min_ns: None,
            measured_max_ns: None,
            hot_ns: None,
            later_ns: None,
            minor_faults_per_burst: None,
            indices_per_cpu_max: None,
            published_column: index.column.map(|column| column.name()),
            published_ns: index.column.and_then(|column| column.of(part.published, delay_ms)),
            forecast_ns: forecast.ns,
            forecast_error: None,
            with_hot_ns: forecast.with_hot_ns,
            with_hot_error: None,
        }
    }

    /// Sets the measured values from the finished repetitions.
    pub(super) fn measured(&mut self, repetitions: &[Measured]) {
        let mean = |of: fn(&Measured) -> f64| {
            let sum: f64 = repetitions.iter().map(of).sum();
            (!repetitions.is_empty()).then(|| sum / repetitions.len() as f64)
        };
        let all = || repetitions.iter().map(|one| one.ns_per_burst);
        self.repetitions = repetitions.len();
        self.measured_ns = mean(|one| one.ns_per_burst);
        self.measured_min_ns = all().reduce(f64::min);
        self.measured_max_ns = all().reduce(f64::max);
        self.hot_ns = mean(|one| one.ns_hot);
        self.later_ns = mean(|one| one.ns_later);
        self.minor_faults_per_burst = mean(|one| one.minor_faults_per_burst);
        self.indices_per_cpu_max = repetitions.iter().map(|one| one.indices_per_cpu_max).max();
        self.forecast_error = self.measured_ns.map(|measured| self.forecast_ns / measured - 1.0);
        self.with_hot_error = self.measured_ns.map(|measured| self.with_hot_ns / measured - 1.0);
    }

    /// Returns this machine's part and the pause between two turns.
    pub(super) fn place(&self) -> String {
        format!("{} ({}), {} ms", self.part, self.shape, self.delay_ms)
    }
}

const TITLE: &str = "The published intermittent benchmark on this machine, ns per burst of 16 kB";

impl fmt::Display for PublishedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}")?;
        writeln!(f, "{}\n{}", self.parts_table(), self.table())?;
        self.notes().iter().try_for_each(|note| writeln!(f, "{}", wrapped(&format!("  {note}"))))
    }
}

impl Part {
    /// Returns the state of the measurement: measured, or the reason why not.
    fn state(&self) -> String {
        match (&self.selection.lacks, &self.selection.same_as) {
            (Some(lacks), _) => format!("left out; {lacks}"),
            (None, Some(same_as)) => format!("the same CPUs as {same_as}"),
            (None, None) => "yes".to_owned(),
        }
    }
}

impl PublishedReport {
    pub(super) fn table(&self) -> Table {
        let columns = [
            "part and pause",
            "index",
            "policy",
            "runs",
            "measured",
            "from - to",
            "published",
            "forecast",
            "error",
            "with hot",
            "error",
            "faults",
            "per CPU",
        ];
        let mut table = Table::new(columns, 3);
        for row in &self.rows {
            let range = row.measured_min_ns.zip(row.measured_max_ns);
            table.row([
                row.place(),
                row.index.to_owned(),
                row.policy.to_owned(),
                row.repetitions.to_string(),
                whole(row.measured_ns),
                range.map_or("-".to_owned(), |(from, to)| format!("{from:.0} - {to:.0}")),
                whole(row.published_ns),
                whole(Some(row.forecast_ns)),
                percent(row.forecast_error),
                whole(Some(row.with_hot_ns)),
                percent(row.with_hot_error),
                row.minor_faults_per_burst.map_or("-".to_owned(), |n| format!("{n:.2}")),
                row.indices_per_cpu_max.map_or("-".to_owned(), |n| n.to_string()),
            ]);
        }
        table
    }

    /// Returns a table of the four parts, as far as this machine has them.
    pub(super) fn parts_table(&self) -> Table {
        let mut table = Table::new(["part", "here", "published as", "CPUs", "measured"], 5);
        for part in &self.parts {
            let Selection { name, shape, .. } = &part.selection;
            let published = part.published.to_owned();
            table.row([
                name.clone(),
                shape.clone(),
                published,
                part.selection.list(),
                part.state(),
            ]);
        }
        table
    }

    /// Returns the notes that are needed to read the table.
    pub(super) fn notes(&self) -> Vec<String> {
        let generation = self.kernel_ids.as_deref().unwrap_or("none");
        let mut notes = vec![
            self.verdict(),
            format!("the kernel's IDs: {generation} ({})", self.kernel_ids_known),
            "published: 2 x AMD EPYC 9654, Linux commit 7e019dcc470f; percid's table is beside \
             the cache-local IDs"
                .to_owned(),
            format!(
                "forecast: this machine's CPUs and caches with the published machine's prices (hot {:.0}); with hot: a \
                 hot burst costs {:.0} as measured here, apart from the benchmark",
                self.published_hot_ns, self.here_hot_ns
            ),
            "faults: minor ones per timed burst; per CPU: distinct indices that one CPU saw"
                .to_owned(),
        ];
        let without = |noise: Noise| format!("{noise}; runs at such times have no figure");
        notes.extend(self.circumstances.hiding().map(without));
        notes.extend(self.unlike_published());
        notes
    }

    /// Returns the forecast's errors in one sentence.
    pub(super) fn verdict(&self) -> String {
        let said = |errors: Errors| {
            format!(
                "mean error {:.1} %, worst {:+.1} %",
                100.0 * errors.mean_error,
                100.0 * errors.worst_error
            )
        };
        match (self.forecast, self.with_hot) {
            (Some(forecast), Some(with_hot)) => format!(
                "the forecast on this machine: {}; with hot: {}",
                said(forecast),
                said(with_hot)
            ),
            _ => "the forecast on this machine was compared with nothing".to_owned(),
        }
    }

    /// Returns the differences between this run and the published one.
    fn unlike_published(&self) -> Option<String> {
        let mut differences = Vec::new();
        if self.bursts != 5 {
            differences.push(format!("{} timed bursts in place of 5", self.bursts));
        }
        if self.warmup != 20_000 {
            differences.push(format!("{} warm-up bursts in place of 20000", self.warmup));
        }
        if self.prefaulted {
            differences.push("memory was written to beforehand".to_owned());
        }
        (!differences.is_empty()).then(|| format!("not as published: {}", differences.join(", ")))
    }
}

/// Formats a time without decimals; a dash if there is none.
fn whole(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), |ns| format!("{ns:.0}"))
}

/// Formats a share as a difference in percent.
fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:+.1} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_error_keeps_its_sign() {
        let errors = Errors::of([Some(0.1), None, Some(-0.5)].into_iter());
        assert_eq!(errors, Some(Errors { mean_error: 0.3, worst_error: -0.5 }));
        assert_eq!(Errors::of([None].into_iter()), None);
    }
}
