//! What the bursts of the table find, apart from what that costs: so that the table can be priced
//! again without simulating it again.
//!
//! Prices are not quite without effect on what is found: a burst that takes longer is met by more
//! ticks. So what is priced again differs from what is simulated again by as much as that changes;
//! [`super::fit`] simulates anew with the prices that it has found.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::setting::Setting;
use super::table::{CellRuns, POLICIES, cells};
use crate::cost::{Found, Prices};
use crate::published::{self, Intermittent};
use crate::run_control::RunControl;
use crate::topology::Reach;

/// What the bursts of one cell found.
#[derive(Debug, Clone, PartialEq)]
struct CellFindings {
    /// Equal ones counted.
    counts: Vec<(Found, u64)>,
    /// What finding the IDs took, in nanoseconds.
    work_ns: u64,
}

/// What the bursts of all cells found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    cells: Vec<CellFindings>,
}

/// A cell has about this many threads in all its runs together: what it costs is a mean over them.
const THREADS: u64 = 6000;
/// The fewest and the most runs that this makes: threads of one run meet the same ticks.
const RUNS: [u64; 2] = [20, 150];

/// How many runs a cell of this row gets.
fn runs_of(row: &Intermittent) -> u64 {
    (THREADS / u64::from(row.threads)).clamp(RUNS[0], RUNS[1])
}

impl Findings {
    /// How many runs [`Findings::simulate`] makes.
    pub fn runs() -> u64 {
        let rows = published::intermittent();
        POLICIES.len() as u64 * rows.iter().map(runs_of).sum::<u64>()
    }

    /// Simulates all cells, on all CPUs of this machine; none if it was stopped.
    pub fn simulate(setting: &Setting, seed: u64, progress: &RunControl) -> Option<Findings> {
        let cells = cells(setting, &published::intermittent(), runs_of, seed);
        let found = cells.par_iter().map(|cell| CellFindings::simulate(cell, progress));
        let found: Option<Vec<CellFindings>> = found.collect();
        Some(Findings { cells: found? })
    }

    /// The same with some cells simulated anew, in another setting; none if it was stopped.
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

    /// The cells in which not as many bursts found their memory at each distance in all of these
    /// findings.
    pub fn that_differ(all: &[&Findings]) -> Vec<usize> {
        let Some((first, others)) = all.split_first() else { return Vec::new() };
        let differs = |&cell: &usize| {
            let distances = first.cells[cell].distances();
            others.iter().any(|other| other.cells[cell].distances() != distances)
        };
        (0..first.cells.len()).filter(differs).collect()
    }

    /// The mean cost of a burst in some cells, in nanoseconds, by the prices of a setting. Cells are
    /// numbered as in [`super::table::published_ns`].
    pub fn costs(&self, setting: &Setting, cells: &[usize]) -> Vec<f64> {
        let prices = Prices::new(&setting.machine, setting.workload.memory);
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

    /// The bursts by the distance of what they found.
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
