//! The states of areas that the table's bursts find, without their costs: the table can be priced
//! again without another simulation.
//!
//! Prices have a small effect on these states: a longer burst is interrupted by more ticks. So
//! pricing again differs slightly from simulating again. [`super::fit`] simulates again with the
//! prices that it has found.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::setting::Setting;
use super::table::{CellRuns, POLICIES, cells};
use crate::cost::{Found, Prices};
use crate::published::{self, Intermittent};
use crate::run_control::RunControl;
use crate::topology::Reach;

/// The states that the bursts of one cell found.
#[derive(Debug, Clone, PartialEq)]
struct CellFindings {
    /// Distinct states, and the number of bursts that found each.
    counts: Vec<(Found, u64)>,
    /// Time for finding the IDs, in nanoseconds.
    work_ns: u64,
}

/// The states that the bursts of all cells found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    cells: Vec<CellFindings>,
}

/// Approximate number of threads in all runs of a cell, over which its cost is averaged.
const THREADS: u64 = 6000;
/// Minimum and maximum number of runs of a cell. There is a minimum because threads of one run meet
/// the same ticks.
const RUNS: [u64; 2] = [20, 150];

/// Returns the number of runs of a cell in this row.
fn runs_of(row: &Intermittent) -> u64 {
    (THREADS / u64::from(row.threads)).clamp(RUNS[0], RUNS[1])
}

impl Findings {
    /// Returns the number of runs of [`Findings::simulate`].
    pub fn runs() -> u64 {
        let rows = published::intermittent();
        POLICIES.len() as u64 * rows.iter().map(runs_of).sum::<u64>()
    }

    /// Returns the number of runs of [`Findings::simulate_part`].
    pub fn runs_of_part(part: u64) -> u64 {
        let rows = published::intermittent();
        POLICIES.len() as u64 * rows.iter().map(|row| runs_of(row).div_ceil(part)).sum::<u64>()
    }

    /// Simulates all cells on all CPUs of this machine. Returns `None` if it was stopped.
    pub fn simulate(setting: &Setting, seed: u64, progress: &RunControl) -> Option<Findings> {
        Findings::simulate_part(setting, 1, seed, progress)
    }

    /// Simulates like [`Findings::simulate`], but only one of `part` runs.
    pub fn simulate_part(
        setting: &Setting,
        part: u64,
        seed: u64,
        progress: &RunControl,
    ) -> Option<Findings> {
        let runs = |row: &Intermittent| runs_of(row).div_ceil(part);
        let cells = cells(setting, &published::intermittent(), runs, seed);
        let found = cells.par_iter().map(|cell| CellFindings::simulate(cell, progress));
        let found: Option<Vec<CellFindings>> = found.collect();
        Some(Findings { cells: found? })
    }

    /// Returns these findings with some cells simulated again in another setting. Returns `None` if
    /// it was stopped.
    pub fn renewed(
        &self,
        renew: &[usize],
        setting: &Setting,
        seed: u64,
        progress: &RunControl,
    ) -> Option<Findings> {
        let runs = cells(setting, &published::intermittent(), runs_of, seed);
        let cells = self.cells.par_iter().zip(runs).enumerate().map(|(at, (found, runs))| {
            match renew.contains(&at) {
                true => CellFindings::simulate(&runs, progress),
                false => {
                    progress.done.fetch_add(runs.runs(), Relaxed);
                    Some(found.clone())
                }
            }
        });
        let cells: Option<Vec<CellFindings>> = cells.collect();
        Some(Findings { cells: cells? })
    }

    /// Returns the cells whose bursts per distance are not the same in all of these findings.
    pub fn that_differ(all: &[&Findings]) -> Vec<usize> {
        let Some((first, others)) = all.split_first() else { return Vec::new() };
        let differs = |&cell: &usize| {
            let distances = first.cells[cell].distances();
            others.iter().any(|other| other.cells[cell].distances() != distances)
        };
        (0..first.cells.len()).filter(differs).collect()
    }

    /// Returns the mean cost of a burst in some cells, in nanoseconds, with the prices of a
    /// setting. Cells are numbered as in [`super::table::published_ns`].
    pub fn costs(&self, setting: &Setting, cells: &[usize]) -> Vec<f64> {
        let prices = Prices::new(&setting.machine, setting.workload.memory).with_laws(setting.laws);
        cells.iter().map(|&cell| self.cells[cell].cost(&prices)).collect()
    }
}

impl CellFindings {
    fn simulate(cell: &CellRuns, progress: &RunControl) -> Option<CellFindings> {
        let (mut counts, mut work_ns) = (BTreeMap::new(), 0);
        cell.simulate(
            progress,
            |simulation| simulation.record_found(),
            |outcome| {
                work_ns += outcome.expense.timed_work_ns;
                for found in outcome.found {
                    *counts.entry(found.rounded()).or_default() += 1;
                }
            },
        )?;
        Some(CellFindings { counts: counts.into_iter().collect(), work_ns })
    }

    fn bursts(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Returns the number of bursts for each distance.
    fn distances(&self) -> BTreeMap<Option<Reach>, u64> {
        let mut distances = BTreeMap::new();
        for (found, count) in &self.counts {
            *distances.entry(found.reach).or_default() += count;
        }
        distances
    }

    fn cost(&self, prices: &Prices) -> f64 {
        let ns: u64 = self.counts.iter().map(|(found, count)| count * prices.burst(found).1).sum();
        (ns + self.work_ns) as f64 / self.bursts() as f64
    }
}
