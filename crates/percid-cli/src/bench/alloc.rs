//! `percid bench alloc`: percid-alloc's caches beside allocators that programs use.

pub(super) mod idle;

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
use idle::Idle;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;

/// The caches in front of an allocator, and what they are compared to.
const COMPARISONS: [Comparison; 5] = [
    ("per_cpu_mixed", "system_mixed"),
    ("per_cpu_mixed", "mimalloc_mixed"),
    ("per_cpu_mimalloc_mixed", "mimalloc_mixed"),
    ("per_cpu_shared", "system_shared"),
    ("per_cpu_shared", "mimalloc_shared"),
];

/// The keys of `bench alloc` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct AllocReport {
    /// `true` if every cached block is accounted for.
    pub(crate) alloc_exact: bool,
    alloc: Vec<Figure>,
    alloc_ratios: Vec<Ratio>,
    alloc_idle: Vec<Idle>,
}

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    idle_threads: &[usize],
    interrupt: &Interrupt,
) -> Result<Judged<AllocReport>, Failure> {
    let idle = idle::measure(idle_threads, interrupt);
    let mut benchmark =
        Benchmark::new(Placement::one_two_and_eight(cpus), cpus, loops::alloc_operations)?;
    let circumstances = benchmark.run("bench alloc", length, interrupt);
    Ok(Judged::new(AllocReport::of(&benchmark, idle), circumstances))
}

impl AllocReport {
    fn of(benchmark: &Benchmark, alloc_idle: Vec<Idle>) -> AllocReport {
        AllocReport {
            alloc_exact: AccountReport::all(benchmark).iter().all(AccountReport::is_exact),
            alloc: figures::figures(benchmark),
            alloc_ratios: comparisons::ratios(benchmark, &COMPARISONS),
            alloc_idle,
        }
    }
}

impl Part for AllocReport {
    const NAME: &'static str = "alloc";
    const TIMES: &'static [&'static str] =
        &["ns_min", "ns_median", "ratio_to_plain_add", "median", "of_minima"];

    fn counts(&self) -> String {
        let verdict = if self.alloc_exact {
            "every block is accounted for"
        } else {
            "A BLOCK WAS LOST OR COUNTED TWICE"
        };
        format!("  {verdict}\n{}", idle::Table(&self.alloc_idle))
    }
}

impl fmt::Display for AllocReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One object freed and one allocated, in nanoseconds; x: how many times plain_add with \
             the same threads"
        )?;
        write!(f, "{}{}", figures::table(&self.alloc), self.counts())?;
        writeln!(f, "\npercid's operation as a multiple of the one beside it")?;
        write!(f, "{}", comparisons::table(&self.alloc_ratios))
    }
}
