//! `percid bench mask`: the cost of membership in a mask that all threads share.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::accounts::AccountReport;
use super::benchmark::Benchmark;
use super::figures::{self, Figure};
use super::loops;
use super::team::Placement;
use crate::judged::{Judged, Part};
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;

/// The keys of `bench mask` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct MaskReport {
    /// `true` if every worker that marked itself was found in the mask, and no other.
    pub(crate) mask_exact: bool,
    pub(crate) mask: Vec<Figure>,
}

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<Judged<MaskReport>, Failure> {
    let mut placements = vec![Placement::Anywhere(1), Placement::one_on_each(cpus)];
    placements.dedup();
    let mut benchmark = Benchmark::new(placements, cpus, |_| loops::mask_operations())?;
    let circumstances = benchmark.run("bench mask", length, interrupt);
    Ok(Judged::new(MaskReport::of(&benchmark), circumstances))
}

impl MaskReport {
    pub(crate) fn of(benchmark: &Benchmark) -> Self {
        MaskReport {
            mask_exact: AccountReport::all(benchmark).iter().all(AccountReport::is_exact),
            mask: figures::figures(benchmark),
        }
    }
}

impl Part for MaskReport {
    const NAME: &'static str = "mask";
    const TIMES: &'static [&'static str] = figures::TIMES;

    fn counts(&self) -> String {
        let verdict =
            if self.mask_exact { "every member was found" } else { "A MEMBER IS MISSING" };
        format!("  {verdict}\n")
    }
}

impl fmt::Display for MaskReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Setting a thread's bit in a mask that all threads share, in nanoseconds; x: how many times plain_add"
        )?;
        write!(f, "{}{}", figures::table(&self.mask), self.counts())
    }
}
