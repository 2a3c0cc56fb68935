//! `percid bench ops`: the cost of single operations, percid's compared to common alternatives.

pub(super) mod comparisons;
mod report;

use std::time::{Duration, Instant};

use super::benchmark::Benchmark;
use super::loops;
use super::team::Placement;
use crate::judged::Judged;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;

pub(crate) use report::OpsReport;

/// Number of threads per allowed CPU in the team that competes for the CPUs.
const CROWD: usize = 4;

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<Judged<OpsReport>, Failure> {
    let began = Instant::now();
    let mut placements = vec![
        Placement::Anywhere(1),
        Placement::one_on_each(cpus),
        Placement::Anywhere(CROWD * cpus.len()),
    ];
    placements.dedup();
    let mut benchmark = Benchmark::new(placements, cpus, loops::operations)?;
    let circumstances = benchmark.run("bench ops", length, interrupt);
    Ok(Judged::new(OpsReport::of(&benchmark, began.elapsed()), circumstances))
}
