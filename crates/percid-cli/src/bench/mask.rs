//! `percid bench mask`: what it costs to be a member of a mask that all threads share.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::accounts::AccountReport;
use super::benchmark::Benchmark;
use super::figures::{self, Figure};
use super::loops;
use super::team::Placement;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;

/// The keys of `bench mask` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct MaskReport {
    /// Every worker that marked itself was found in the mask, and no other.
    pub(crate) mask_exact: bool,
    pub(crate) mask: Vec<Figure>,
}

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<MaskReport, Failure> {
    let mut placements = vec![Placement::Anywhere(1), Placement::one_on_each(cpus)];
    placements.dedup();
    let mut benchmark = Benchmark::new(placements, cpus, |_| loops::mask_operations())?;
    benchmark.run("bench mask", length, interrupt);
    Ok(MaskReport::of(&benchmark))
}

impl MaskReport {
    pub(crate) fn of(benchmark: &Benchmark) -> Self {
        MaskReport {
            mask_exact: AccountReport::all(benchmark).iter().all(AccountReport::is_exact),
            mask: figures::figures(benchmark),
        }
    }
}

impl fmt::Display for MaskReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Setting a thread's bit in a mask that all threads share, in nanoseconds; x: how many times plain_add"
        )?;
        write!(f, "{}", figures::table(&self.mask))?;
        let verdict =
            if self.mask_exact { "every member was found" } else { "A MEMBER IS MISSING" };
        writeln!(f, "  {verdict}")
    }
}
