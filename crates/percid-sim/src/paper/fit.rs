//! Fit of the model's fitted numbers to cells of the published table.

use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::findings::Findings;
use super::minimise::minimise;
use super::setting::Setting;
use super::table::published_ns;
use crate::run_control::RunControl;

/// Name of the fitted number that changes the states that bursts find: each tried value is
/// simulated. All other fitted numbers are prices.
pub const TIMED: &str = "wake_us";

/// Number of values of [`TIMED`] per factor of 2. They range from half of the workload's number to
/// twice as much: that number was measured, though not on the published machine.
const STEPS_PER_OCTAVE: i32 = 6;

/// Number of values on both sides of the first result that are tried again with the fitted prices.
const STEPS_AGAIN: i32 = 2;

/// Initial step of the price search, which uses logarithms.
const EDGE: f64 = 0.2;

/// Scale of errors, as logarithms. Errors that are much smaller count by their square, errors that
/// are much larger count linearly.
const SMALL: f64 = 0.1;

/// A fit to some cells.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The setting with the fitted numbers.
    pub setting: Setting,
    /// The minimum of [`misfit`] that the fit has found.
    pub misfit: f64,
    /// Index of the value of [`TIMED`].
    step: i32,
}

/// The states that bursts find with one value of [`TIMED`].
#[derive(Debug)]
struct Trial {
    step: i32,
    setting: Setting,
    findings: Findings,
}

/// The states that bursts find with each tried value of [`TIMED`]: the basis of all fits.
#[derive(Debug)]
pub struct Trials {
    start: Setting,
    seed: u64,
    trials: Vec<Trial>,
    /// Cells in which the states depend on [`TIMED`], and so on prices.
    timed: Vec<usize>,
}

/// Returns the distance of costs from the published ones: the mean over the cells of s^2 (sqrt(1 +
/// (e/s)^2) - 1). Here e is the logarithm of their quotient, and s = 0.1.
///
/// So a cell with half of the published cost counts as much as one with twice the cost. With errors
/// as shares of the published cost, no cell could be more than 100 % too small. The pull of errors
/// of several tenths, which no choice of numbers removes, does not grow further: with squares, two
/// cells would determine the fit. Unlike the mean of absolute errors, this function is smooth, so a
/// search without derivatives does not stop at a kink.
pub fn misfit(costs: &[f64], published: &[f64]) -> f64 {
    let each = costs.iter().zip(published).map(|(cost, published)| {
        let error = libm::log(cost / published) / SMALL;
        SMALL * SMALL * (libm::sqrt(1.0 + error * error) - 1.0)
    });
    each.sum::<f64>() / costs.len() as f64
}

impl Trials {
    /// Returns the number of runs of [`Trials::simulate`].
    pub fn runs() -> u64 {
        steps().count() as u64 * Findings::runs()
    }

    /// Returns the number of runs of [`Trials::fit`].
    pub fn runs_of_fit() -> u64 {
        steps_around(0).count() as u64 * Findings::runs()
    }

    /// Simulates the table with each value of [`TIMED`]. Returns `None` if it was stopped.
    pub fn simulate(start: &Setting, seed: u64, progress: &RunControl) -> Option<Trials> {
        let trial = |step: i32| {
            let setting = with_timed(start, start, step);
            let findings = Findings::simulate(&setting, seed, progress)?;
            Some(Trial { step, setting, findings })
        };
        let trials: Option<Vec<Trial>> = steps().map(trial).collect();
        let trials = trials?;
        let all: Vec<&Findings> = trials.iter().map(|trial| &trial.findings).collect();
        let timed = Findings::that_differ(&all);
        Some(Trials { start: start.clone(), seed, trials, timed })
    }

    /// Fits all fitted numbers to some cells, numbered as in [`published_ns`]. Returns `None` if it
    /// was stopped.
    ///
    /// The prices determine the duration of bursts, and so the number of ticks that interrupt them.
    /// So the fit has two steps; the second one simulates with the prices from the first one.
    pub fn fit(&self, cells: &[usize], progress: &RunControl) -> Option<Fit> {
        let first = best(&self.trials, cells);
        let again = |step: i32| {
            let trial = self.trials.iter().find(|trial| trial.step == step);
            let Some(trial) = trial else {
                progress.done.fetch_add(Findings::runs(), Relaxed);
                return Some(None);
            };
            let setting = with_timed(&first.setting, &self.start, step);
            let seed = self.seed.wrapping_add(SEEDS_OF_TRIALS);
            let findings = trial.findings.renewed(&self.timed, &setting, seed, progress)?;
            Some(Some(Trial { step, setting, findings }))
        };
        let trials: Option<Vec<Option<Trial>>> = steps_around(first.step).map(again).collect();
        let trials: Vec<Trial> = trials?.into_iter().flatten().collect();
        Some(best(&trials, cells))
    }
}

/// Offset of the seeds of the second step, which exceeds the number of seeds of one trial.
const SEEDS_OF_TRIALS: u64 = 1000;

/// Returns the best fit of prices among the trials.
fn best(trials: &[Trial], cells: &[usize]) -> Fit {
    let fits: Vec<Fit> = trials.par_iter().map(|trial| fit_prices(trial, cells)).collect();
    let best = fits.into_iter().min_by(|one, other| one.misfit.total_cmp(&other.misfit));
    best.expect("there are trials")
}

/// Fits all fitted prices.
fn fit_prices(trial: &Trial, cells: &[usize]) -> Fit {
    let published = published_ns();
    let published: Vec<f64> = cells.iter().map(|&cell| published[cell]).collect();
    let parameters = trial.setting.parameters();
    let prices = parameters.iter().filter(|one| one.fitted && one.name != TIMED);
    let prices: Vec<&str> = prices.map(|one| one.name).collect();
    let at = |logarithms: &[f64]| {
        let mut setting = trial.setting.clone();
        for (name, logarithm) in prices.iter().zip(logarithms) {
            *number(&mut setting, name) *= libm::exp(*logarithm);
        }
        setting
    };
    let costs = |logarithms: &[f64]| trial.findings.costs(&at(logarithms), cells);
    let start = vec![0.0; prices.len()];
    let least = minimise(&start, EDGE, |logarithms| misfit(&costs(logarithms), &published));
    Fit { setting: at(&least.at), misfit: least.value, step: trial.step }
}

fn number<'s>(setting: &'s mut Setting, name: &str) -> &'s mut f64 {
    setting.number_mut(name).expect("one of its parameters")
}

/// Returns `setting` with the value of [`TIMED`] that is `step` steps away from the value in
/// `from`.
fn with_timed(setting: &Setting, from: &Setting, step: i32) -> Setting {
    let (mut setting, mut from) = (setting.clone(), from.clone());
    let share = libm::exp2(f64::from(step) / f64::from(STEPS_PER_OCTAVE));
    *number(&mut setting, TIMED) = share * *number(&mut from, TIMED);
    setting
}

fn steps() -> impl Iterator<Item = i32> {
    -STEPS_PER_OCTAVE..=STEPS_PER_OCTAVE
}

fn steps_around(step: i32) -> impl Iterator<Item = i32> {
    step - STEPS_AGAIN..=step + STEPS_AGAIN
}
