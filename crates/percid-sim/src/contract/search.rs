//! A search for a violation of a policy's contract.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::execution::execute;
use super::schedule::Schedule;
use super::shrink::shrink;
use super::violation::Violation;
use crate::policies::PolicySpec;
use crate::run_control::RunControl;

/// The extent of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Number of random schedules.
    pub runs: u64,
    /// Seed of the first schedule; the others follow it.
    pub seed: u64,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Number of schedules that were executed.
    pub runs: u64,
    /// The violation with the lowest seed, if there is one.
    pub finding: Option<Finding>,
}

/// A violation, in as few steps as could be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Seed of the random schedule.
    pub seed: u64,
    /// Number of steps that the random schedule had executed.
    pub random_steps: u64,
    /// The reduced schedule. Its last step breaks the contract.
    pub schedule: Schedule,
    /// The violation at the end of the reduced schedule.
    pub violation: Violation,
}

/// Executes random schedules, on all CPUs of this machine, until one breaks the contract. The
/// finding does not depend on the number of CPUs. `control.done` counts schedules.
pub fn check(entry: &PolicySpec, search: Search, control: &RunControl) -> Found {
    let runs = AtomicU64::new(0);
    let broken = (0..search.runs).into_par_iter().find_map_first(|run| {
        if control.stop.load(Relaxed) {
            return None;
        }
        let seed = search.seed.wrapping_add(run);
        let schedule = Schedule::random(seed);
        let execution = execute(entry, &schedule);
        runs.fetch_add(1, Relaxed);
        control.done.fetch_add(1, Relaxed);
        execution.violation.is_some().then_some((seed, schedule, execution.steps))
    });
    let finding = broken.and_then(|(seed, schedule, steps)| {
        let random_steps = steps.len() as u64;
        let (schedule, violation) = shrink(entry, Schedule { steps, ..schedule })?;
        Some(Finding { seed, random_steps, schedule, violation })
    });
    Found { runs: runs.into_inner(), finding }
}
