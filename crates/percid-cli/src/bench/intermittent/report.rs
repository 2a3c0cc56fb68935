//! The rows of the intermittent benchmark.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::index::Index;
use super::plan::Plan;
use super::selection::Selection;
use super::tally::Tally;
use crate::bench::samples::Samples;
use crate::judged::Part;
use crate::machine::wrapped;
use percid_command::text_table::{Align, TextTable};

/// The keys of `bench intermittent` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct IntermittentReport {
    /// Planned timed bursts per thread and delay.
    bursts: u64,
    /// Warm-up bursts per thread and index.
    warmup: u64,
    /// Planned number of repetitions.
    repetitions: u64,
    prefaulted: bool,
    seed: u64,
    selection: Selection,
    pub(crate) rows: Vec<Row>,
}

/// One index with one delay. Times in nanoseconds per burst.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) index: String,
    pub(crate) delay_ms: u64,
    /// Processes that competed for each CPU.
    pub(crate) overcommit: u64,
    /// Memory that each of them touched, in KiB; `null` if there were none.
    pub(crate) other_memory_kib: Option<u64>,
    pub(crate) threads: usize,
    /// Timed bursts of all threads and repetitions.
    bursts_timed: usize,
    /// Bursts during which the thread was preempted: they are not timed.
    bursts_preempted: usize,
    ns_per_burst: f64,
    /// Mean over the threads of the burst right after the warm-up.
    pub(crate) ns_hot: f64,
    /// Mean of the bursts after a pause; `null` if Ctrl-C came before.
    pub(crate) ns_later: Option<f64>,
    /// The minimum of them.
    ns_later_min: Option<f64>,
    /// The median of them.
    ns_later_median: Option<f64>,
    ids_used: usize,
    pub(crate) indices_per_cpu_max: usize,
    /// Mean over the threads.
    minor_faults_first_burst: f64,
    /// Mean over the timed bursts.
    minor_faults_per_burst: f64,
}

/// One measurement: one delay and one number of competitors.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) delay_ms: u64,
    pub(super) overcommit: u64,
    pub(super) other_memory_kib: Option<u64>,
    /// Threads of one repetition.
    pub(super) threads: usize,
}

impl IntermittentReport {
    pub(super) fn new(plan: &Plan, rows: Vec<Row>) -> Self {
        IntermittentReport {
            bursts: plan.bursts,
            warmup: plan.warmup,
            repetitions: plan.repetitions,
            prefaulted: plan.prefault,
            seed: plan.seed,
            selection: plan.selection.clone(),
            rows,
        }
    }
}

impl Row {
    /// Creates a row from the tallies of all threads and repetitions. `None` if Ctrl-C came before
    /// the first timed burst.
    pub(super) fn new(index: Index, setting: &Setting, tallies: &[&Tally]) -> Option<Self> {
        let nanoseconds = |took: std::time::Duration| took.as_nanos() as f64;
        let timed: Samples =
            tallies.iter().flat_map(|tally| tally.timed()).map(nanoseconds).collect();
        let hot: Samples = tallies.iter().filter_map(|tally| tally.hot).map(nanoseconds).collect();
        let later: Samples =
            tallies.iter().flat_map(|tally| &tally.later).copied().map(nanoseconds).collect();
        let first: Samples = tallies
            .iter()
            .filter_map(|tally| tally.faults_first)
            .map(|faults| faults as f64)
            .collect();
        let faults: i64 = tallies.iter().map(|tally| tally.faults_timed).sum();
        Some(Row {
            index: index.to_string(),
            delay_ms: setting.delay_ms,
            overcommit: setting.overcommit,
            other_memory_kib: setting.other_memory_kib,
            threads: setting.threads,
            bursts_timed: timed.len(),
            bursts_preempted: tallies.iter().map(|tally| tally.preempted).sum(),
            ns_per_burst: timed.mean()?,
            ns_hot: hot.mean()?,
            ns_later: later.mean(),
            ns_later_min: later.min(),
            ns_later_median: later.median(),
            ids_used: distinct(tallies.iter().flat_map(|tally| tally.indices.iter().copied())),
            indices_per_cpu_max: tallies.iter().map(|tally| tally.indices.len()).max()?,
            minor_faults_first_burst: first.mean()?,
            minor_faults_per_burst: faults as f64 / timed.len() as f64,
        })
    }

    /// Returns the cells before the times, the times, and the cells after them.
    fn cells(&self) -> [Vec<String>; 3] {
        let setting = vec![
            self.index.clone(),
            self.delay_ms.to_string(),
            self.overcommit.to_string(),
            self.other_memory_kib.map_or("-".to_owned(), |kib| kib.to_string()),
            self.threads.to_string(),
        ];
        let later = [self.ns_later, self.ns_later_min, self.ns_later_median];
        let times = [Some(self.ns_hot)].into_iter().chain(later).chain([Some(self.ns_per_burst)]);
        let counts = vec![
            self.ids_used.to_string(),
            self.indices_per_cpu_max.to_string(),
            format!("{:.1}", self.minor_faults_first_burst),
            format!("{:.1}", self.minor_faults_per_burst),
        ];
        [setting, times.map(whole).collect(), counts]
    }
}

#[cfg(test)]
impl IntermittentReport {
    pub(crate) fn fixed(rows: Vec<Row>) -> Self {
        let machine = percid::machine::read().cpus;
        IntermittentReport {
            bursts: 5,
            warmup: 20_000,
            repetitions: 1,
            prefaulted: false,
            seed: 1,
            selection: Selection::new(None, &machine).expect("all CPUs"),
            rows,
        }
    }
}

#[cfg(test)]
impl Row {
    /// Creates a row of two threads.
    pub(crate) fn fixed(index: &str, delay_ms: u64, ns_later: f64, per_cpu: usize) -> Self {
        Row {
            index: index.to_owned(),
            delay_ms,
            overcommit: 0,
            other_memory_kib: None,
            threads: 2,
            bursts_timed: 10,
            bursts_preempted: 0,
            ns_per_burst: ns_later,
            ns_hot: 250.0,
            ns_later: Some(ns_later),
            ns_later_min: Some(ns_later),
            ns_later_median: Some(ns_later),
            ids_used: 2,
            indices_per_cpu_max: per_cpu,
            minor_faults_first_burst: 4.0,
            minor_faults_per_burst: 0.0,
        }
    }
}

impl fmt::Display for IntermittentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Bursts over 16 kB after a pause of delay x threads, in nanoseconds ({} warm-up and {} timed bursts, seed {})",
            self.warmup, self.bursts, self.seed
        )?;
        write!(f, "{}", self.text(true))
    }
}

impl Part for IntermittentReport {
    const NAME: &'static str = "intermittent";
    const TIMES: &'static [&'static str] =
        &["ns_per_burst", "ns_hot", "ns_later", "ns_later_min", "ns_later_median"];

    fn counts(&self) -> String {
        self.text(false)
    }
}

impl IntermittentReport {
    fn text(&self, with_times: bool) -> String {
        let selection = wrapped(&format!("  {}", self.selection));
        let others = match self.rows.iter().any(|row| row.overcommit > 0) {
            true => {
                "  others: processes that compete for each CPU; KiB: what each goes through, over and over\n"
            }
            false => "",
        };
        format!(
            "{selection}\n{}  per CPU: distinct indices that one CPU saw; 1 is cache-local. faults: minor, {}\n{others}",
            self.table(with_times),
            self.memory()
        )
    }

    fn table(&self, with_times: bool) -> TextTable {
        let times: &[&str] = match with_times {
            true => &["ns hot", "ns later", "min", "median", "ns/burst"],
            false => &[],
        };
        let setting = ["delay ms", "others", "KiB", "threads"];
        let counts = ["IDs", "per CPU", "faults 1st", "per burst"];
        let right = setting.iter().chain(times).chain(&counts);
        let index = [("index", Align::Left)].into_iter();
        let mut table = TextTable::new(index.chain(right.map(|name| (*name, Align::Right))));
        for row in &self.rows {
            let [setting, times, counts] = row.cells();
            let times = times.into_iter().filter(|_| with_times);
            table.row(setting.into_iter().chain(times).chain(counts).collect());
        }
        table
    }

    fn memory(&self) -> &'static str {
        if self.prefaulted { "prefaulted" } else { "on memory mapped copy-on-write" }
    }
}

/// Formats a time without decimals; a dash if there is none.
fn whole(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), |ns| format!("{ns:.0}"))
}

/// Returns the number of different values.
fn distinct(numbers: impl IntoIterator<Item = u32>) -> usize {
    numbers.into_iter().collect::<BTreeSet<_>>().len()
}
