//! The result of `percid bench ops`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::comparisons::{self, Comparison, Ratio};
use crate::bench::accounts::AccountReport;
use crate::bench::benchmark::Benchmark;
use crate::bench::figures::{self, Figure};
use crate::judged::Part;

/// The comparisons that users ask for most.
const COMPARISONS: [Comparison; 7] = [
    ("counter_add", "contatori"),
    ("counter_add", "fast_counter"),
    ("stack_push_pop", "mimalloc"),
    ("stack_push_pop", "array_queue"),
    ("pool_get_put", "mimalloc"),
    ("local_with", "parking_lot_mutex_private"),
    ("histogram_record", "counter_add"),
];

/// The keys of `bench ops` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct OpsReport {
    /// Duration of the measurement in seconds.
    seconds: f64,
    /// Every structure accounts for all that went into it.
    pub(crate) sums_exact: bool,
    pub(crate) sums: Vec<AccountReport>,
    pub(crate) results: Vec<Figure>,
    ratios: Vec<Ratio>,
}

impl OpsReport {
    pub(crate) fn of(benchmark: &Benchmark, took: Duration) -> Self {
        let sums = AccountReport::all(benchmark);
        OpsReport {
            seconds: took.as_secs_f64(),
            sums_exact: sums.iter().all(AccountReport::is_exact),
            sums,
            results: figures::figures(benchmark),
            ratios: comparisons::ratios(benchmark, &COMPARISONS),
        }
    }

    /// Returns the number of operations that were accounted for.
    pub(crate) fn operations(&self) -> i64 {
        self.sums.iter().map(|sum| sum.added).sum()
    }

    fn verdict(&self) -> &'static str {
        if self.sums_exact { "every count is exact" } else { "A COUNT IS WRONG" }
    }
}

#[cfg(test)]
impl OpsReport {
    /// Creates a report with one structure that executed all operations.
    pub(crate) fn fixed(results: Vec<Figure>, operations: i64) -> Self {
        let sums = vec![AccountReport::fixed(operations)];
        OpsReport { seconds: 10.0, sums_exact: true, sums, results, ratios: Vec::new() }
    }
}

impl Part for OpsReport {
    const NAME: &'static str = "ops";
    const TIMES: &'static [&'static str] =
        &["ns_min", "ns_median", "ratio_to_plain_add", "median", "of_minima"];

    fn counts(&self) -> String {
        format!("  {}: {} operations accounted for\n", self.verdict(), self.operations())
    }
}

impl fmt::Display for OpsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One operation, in nanoseconds; x: how many times plain_add with the same threads"
        )?;
        write!(f, "{}{}", figures::table(&self.results), self.counts())?;
        if self.ratios.is_empty() {
            return Ok(());
        }
        writeln!(f, "\npercid's operation as a multiple of the one beside it")?;
        write!(f, "{}", comparisons::table(&self.ratios))
    }
}
