//! `percid bench sync`: the frequent operations of percid-sync beside what people use.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::accounts::AccountReport;
use super::benchmark::Benchmark;
use super::figures::{self, Figure};
use super::loops;
use super::ops::comparisons::{self, Comparison, Ratio};
use super::team::Placement;
use crate::judged::{Judged, Part};
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;

/// Operations and their measures: the addition, and what programs use today.
const COMPARISONS: [Comparison; 14] = [
    ("rw_lock_read", "counter_add"),
    ("rw_lock_read", "std_rwlock_read"),
    ("rw_lock_read", "parking_lot_rwlock_read"),
    ("rw_lock_read", "sharded_lock_read"),
    ("domain_read", "counter_add"),
    ("domain_read", "epoch_pin"),
    ("rcu_cell_load", "counter_add"),
    ("rcu_cell_load", "arc_swap_load"),
    ("arc", "counter_add"),
    ("arc", "std_arc"),
    ("budget_charge", "counter_add"),
    ("budget_charge", "atomic_budget"),
    ("budget_load", "plain_add"),
    ("read_buffer", "counter_add"),
];

/// The keys of `bench sync` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct SyncReport {
    /// `true` if no reader is inside at the end, and no unit is charged.
    pub(crate) sync_exact: bool,
    sync: Vec<Figure>,
    sync_ratios: Vec<Ratio>,
}

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<Judged<SyncReport>, Failure> {
    let mut benchmark =
        Benchmark::new(Placement::one_two_and_eight(cpus), cpus, loops::sync_operations)?;
    let circumstances = benchmark.run("bench sync", length, interrupt);
    Ok(Judged::new(SyncReport::of(&benchmark), circumstances))
}

impl SyncReport {
    fn of(benchmark: &Benchmark) -> SyncReport {
        SyncReport {
            sync_exact: AccountReport::all(benchmark).iter().all(AccountReport::is_exact),
            sync: figures::figures(benchmark),
            sync_ratios: comparisons::ratios(benchmark, &COMPARISONS),
        }
    }
}

impl Part for SyncReport {
    const NAME: &'static str = "sync";
    const TIMES: &'static [&'static str] =
        &["ns_min", "ns_median", "ratio_to_plain_add", "median", "of_minima"];

    fn counts(&self) -> String {
        let verdict = if self.sync_exact {
            "nothing is left over"
        } else {
            "A READER OR A UNIT IS LEFT OVER"
        };
        format!("  {verdict}\n")
    }
}

impl fmt::Display for SyncReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One operation, in nanoseconds; x: how many times plain_add with the same threads"
        )?;
        write!(f, "{}{}", figures::table(&self.sync), self.counts())?;
        writeln!(f, "\npercid's operation as a multiple of the one beside it")?;
        write!(f, "{}", comparisons::table(&self.sync_ratios))
    }
}
