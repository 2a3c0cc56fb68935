//! The rows of the intermittent benchmark.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::index::Index;
use super::plan::Plan;
use super::tally::Tally;
use crate::bench::samples::Samples;
use percid_command::text_table::{Align, TextTable};

/// The keys of `bench intermittent` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct IntermittentReport {
    /// Timed bursts per thread and delay that were planned.
    bursts: u64,
    /// Warm-up bursts per thread and index.
    warmup: u64,
    prefaulted: bool,
    seed: u64,
    pub(crate) rows: Vec<Row>,
}

/// One index with one delay. Times in nanoseconds per burst.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) index: String,
    pub(crate) delay_ms: u64,
    pub(crate) threads: usize,
    /// Timed bursts of all threads.
    bursts_timed: usize,
    ns_per_burst: f64,
    /// Mean over the threads of the burst right after the warm-up.
    pub(crate) ns_hot: f64,
    /// Mean of the bursts after a pause; `null` if Ctrl-C came before.
    pub(crate) ns_later: Option<f64>,
    ids_used: usize,
    pub(crate) indices_per_cpu_max: usize,
    /// Mean over the threads.
    minor_faults_first_burst: f64,
    /// Mean over the timed bursts.
    minor_faults_per_burst: f64,
}

impl IntermittentReport {
    pub(crate) fn new(plan: &Plan, rows: Vec<Row>) -> Self {
        IntermittentReport {
            bursts: plan.bursts,
            warmup: plan.warmup,
            prefaulted: plan.prefault,
            seed: plan.seed,
            rows,
        }
    }
}

impl Row {
    /// `None` where Ctrl-C came before the first timed burst.
    pub(crate) fn new(index: Index, delay_ms: u64, threads: &[&Tally]) -> Option<Self> {
        let nanoseconds = |took: std::time::Duration| took.as_nanos() as f64;
        let timed: Samples =
            threads.iter().flat_map(|tally| tally.timed()).map(nanoseconds).collect();
        let hot: Samples = threads.iter().filter_map(|tally| tally.hot).map(nanoseconds).collect();
        let later: Samples =
            threads.iter().flat_map(|tally| &tally.later).copied().map(nanoseconds).collect();
        let first: Samples = threads
            .iter()
            .filter_map(|tally| tally.faults_first)
            .map(|faults| faults as f64)
            .collect();
        let faults: i64 = threads.iter().map(|tally| tally.faults_timed).sum();
        Some(Row {
            index: index.to_string(),
            delay_ms,
            threads: threads.len(),
            bursts_timed: timed.len(),
            ns_per_burst: timed.mean()?,
            ns_hot: hot.mean()?,
            ns_later: later.mean(),
            ids_used: distinct(threads.iter().flat_map(|tally| tally.indices.iter().copied())),
            indices_per_cpu_max: threads.iter().map(|tally| tally.indices.len()).max()?,
            minor_faults_first_burst: first.mean()?,
            minor_faults_per_burst: faults as f64 / timed.len() as f64,
        })
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.index.clone(),
            self.delay_ms.to_string(),
            self.threads.to_string(),
            format!("{:.0}", self.ns_hot),
            self.ns_later.map_or("-".to_owned(), |ns| format!("{ns:.0}")),
            format!("{:.0}", self.ns_per_burst),
            self.ids_used.to_string(),
            self.indices_per_cpu_max.to_string(),
            format!("{:.1}", self.minor_faults_first_burst),
            format!("{:.1}", self.minor_faults_per_burst),
        ]
    }
}

#[cfg(test)]
impl IntermittentReport {
    pub(crate) fn fixed(rows: Vec<Row>) -> Self {
        IntermittentReport { bursts: 5, warmup: 20_000, prefaulted: false, seed: 1, rows }
    }
}

#[cfg(test)]
impl Row {
    /// Of two threads.
    pub(crate) fn fixed(index: &str, delay_ms: u64, ns_later: f64, per_cpu: usize) -> Self {
        Row {
            index: index.to_owned(),
            delay_ms,
            threads: 2,
            bursts_timed: 10,
            ns_per_burst: ns_later,
            ns_hot: 250.0,
            ns_later: Some(ns_later),
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
        let mut table = TextTable::new([
            ("index", Align::Left),
            ("delay ms", Align::Right),
            ("threads", Align::Right),
            ("ns hot", Align::Right),
            ("ns later", Align::Right),
            ("ns/burst", Align::Right),
            ("IDs", Align::Right),
            ("per CPU", Align::Right),
            ("faults 1st", Align::Right),
            ("per burst", Align::Right),
        ]);
        self.rows.iter().for_each(|row| table.row(row.cells()));
        write!(f, "{table}")?;
        writeln!(
            f,
            "  per CPU: distinct indices that one CPU saw; 1 is cache-local. faults: minor, {}",
            self.memory()
        )
    }
}

impl IntermittentReport {
    fn memory(&self) -> &'static str {
        if self.prefaulted { "prefaulted" } else { "on memory mapped copy-on-write" }
    }
}

/// How many different numbers there are.
fn distinct(numbers: impl IntoIterator<Item = u32>) -> usize {
    numbers.into_iter().collect::<BTreeSet<_>>().len()
}
