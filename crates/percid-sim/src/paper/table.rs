//! The simulated table, with the cells of the published one, and their errors.

use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::setting::Setting;
use crate::engine::{Outcome, Simulation};
use crate::policies;
use crate::published::{self, Intermittent};
use crate::run_control::RunControl;

/// The policies of the table's columns.
pub const POLICIES: [&str; 3] = ["per-cpu", "linux-6.4", "linux-6.13"];

/// Number of runs of a cell. It must be large, because the states that threads find depend on the
/// times of ticks.
pub const RUNS: u64 = 100;

/// Simulates all cells: for each row of the table, one for each of [`POLICIES`].
pub fn table(setting: &Setting, runs: u64, seed: u64) -> Vec<Outcome> {
    watched_table(setting, runs, seed, &RunControl::default()).expect("nobody stops it")
}

/// Simulates like [`table`], and reports progress. Returns `None` if it was stopped.
pub fn watched_table(
    setting: &Setting,
    runs: u64,
    seed: u64,
    progress: &RunControl,
) -> Option<Vec<Outcome>> {
    watched_rows(setting, &published::intermittent(), runs, seed, progress)
}

/// Simulates the cells of some rows: for each row, one for each of [`POLICIES`]. Returns `None` if
/// it was stopped.
pub fn watched_rows(
    setting: &Setting,
    rows: &[Intermittent],
    runs: u64,
    seed: u64,
    progress: &RunControl,
) -> Option<Vec<Outcome>> {
    let cells = cells(setting, rows, |_| runs, seed);
    let cells = cells.par_iter().map(|cell| {
        let mut all = Outcome::default();
        cell.simulate(progress, |simulation| simulation, |one| all.add(&one))?;
        Some(all)
    });
    cells.collect()
}

/// The runs of one cell.
#[derive(Debug)]
pub(super) struct CellRuns {
    setting: Setting,
    policy: &'static str,
    runs: u64,
    seed: u64,
}

/// Returns the runs of all cells of some rows: for each row, one for each of [`POLICIES`].
pub(super) fn cells(
    setting: &Setting,
    rows: &[Intermittent],
    runs: impl Fn(&Intermittent) -> u64,
    seed: u64,
) -> Vec<CellRuns> {
    let of_row = |row: &Intermittent| {
        let (setting, runs) = (setting.row(row), runs(row));
        POLICIES.map(|policy| CellRuns { setting: setting.clone(), policy, runs, seed })
    };
    rows.iter().flat_map(of_row).collect()
}

impl CellRuns {
    /// Returns the number of runs.
    pub(super) fn runs(&self) -> u64 {
        self.runs
    }

    /// Simulates all runs. Each simulation goes through `prepare` before, and its outcome to
    /// `came_out`. Returns `None` if it was stopped.
    pub(super) fn simulate(
        &self,
        progress: &RunControl,
        prepare: impl Fn(Simulation<'_>) -> Simulation<'_>,
        mut came_out: impl FnMut(Outcome),
    ) -> Option<()> {
        let Setting { machine, workload, expiry_times, .. } = &self.setting;
        let program = workload.program(machine).expect("the benchmark fits the machine");
        let policy = policies::with_expiry_times(self.policy, *expiry_times);
        let policy = policy.expect("a policy of the table");
        for run in 0..self.runs {
            let simulation =
                Simulation::new(machine, &program, policy, self.seed.wrapping_add(run));
            let outcome = prepare(simulation).run(&progress.stop);
            came_out(outcome.expect("the table has policies that keep their contract"));
            if progress.stop.load(Relaxed) {
                return None;
            }
            progress.done.fetch_add(1, Relaxed);
        }
        Some(())
    }
}

/// Returns the published costs, in the order of [`table`].
pub fn published_ns() -> Vec<f64> {
    let rows = published::intermittent();
    rows.iter().flat_map(|row| [row.per_cpu_ns, row.mm_cid_ns, row.cache_local_ns]).collect()
}

/// Returns the mean and the largest absolute error of simulated costs, as shares of the published
/// ones.
pub fn errors(table: &[Outcome]) -> (f64, f64) {
    let errors = table.iter().zip(published_ns());
    let errors: Vec<f64> =
        errors.map(|(cell, published)| (cell.ns_per_burst() / published - 1.0).abs()).collect();
    (errors.iter().sum::<f64>() / errors.len() as f64, errors.iter().copied().fold(0.0, f64::max))
}
