//! The fit of the numbers that are marked as fitted to cells of the published table.

use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use super::findings::Findings;
use super::minimise::minimise;
use super::setting::Setting;
use super::table::published_ns;
use crate::run_control::RunControl;

/// The fitted number on which it depends what bursts find: each value that is tried is simulated.
/// All other fitted numbers are prices.
pub const TIMED: &str = "wake_us";

/// How many values of [`TIMED`] are tried for each factor of 2, from a half of the workload's
/// number to twice as much: that number was measured elsewhere, though not on the published
/// machine.
const STEPS_PER_OCTAVE: i32 = 6;

/// How many of them, to both sides of the one found first, are tried again with the prices found.
const STEPS_AGAIN: i32 = 2;

/// The first steps of the prices, which are searched as logarithms.
const EDGE: f64 = 0.2;

/// Errors that are small against this one, as logarithms, count by their square; those that are
/// large, as they are.
const SMALL: f64 = 0.1;

/// A fit to some cells.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The setting with the fitted numbers.
    pub setting: Setting,
    /// What the fit has made least: [`misfit`].
    pub misfit: f64,
    /// Which value of [`TIMED`] it is.
    step: i32,
}

/// What bursts find with one value of [`TIMED`].
#[derive(Debug)]
struct Trial {
    step: i32,
    setting: Setting,
    findings: Findings,
}

/// What bursts find with each value of [`TIMED`] that is tried: what fits to any cells begin with.
#[derive(Debug)]
pub struct Trials {
    start: Setting,
    seed: u64,
    trials: Vec<Trial>,
    /// The cells in which it depends on [`TIMED`] what bursts find, and so on prices.
    timed: Vec<usize>,
}

/// How far costs are from the published ones: the mean over the cells of s^2 (sqrt(1 + (e/s)^2) -
/// 1), with e the logarithm of their quotient and s = 0.1.
///
/// So a cell that is half of what was published counts as much as one that is twice as much, while
/// shares of the published cost would let no cell be more than 100 % too small. Errors of several
/// tenths, which no choice of numbers takes away, pull no stronger the larger they are: with squares
/// two cells would decide. And unlike the mean of absolute errors it has no kinks, in which a search
/// without derivatives comes to rest.
pub fn misfit(costs: &[f64], published: &[f64]) -> f64 {
    let each = costs.iter().zip(published).map(|(cost, published)| {
        let error = libm::log(cost / published) / SMALL;
        SMALL * SMALL * (libm::sqrt(1.0 + error * error) - 1.0)
    });
    each.sum::<f64>() / costs.len() as f64
}

impl Trials {
    /// How many runs [`Trials::simulate`] makes.
    pub fn runs() -> u64 {
        steps().count() as u64 * Findings::runs()
    }

    /// How many runs [`Trials::fit`] makes.
    pub fn runs_of_fit() -> u64 {
        steps_around(0).count() as u64 * Findings::runs()
    }

    /// Simulates the table with each value of [`TIMED`]; none if it was stopped.
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

    /// Fits all numbers that are marked as fitted to some cells, numbered as in [`published_ns`].
    /// None if it was stopped.
    ///
    /// The prices decide how long bursts take, and that how many ticks meet them. So they are fitted
    /// twice, the second time to what bursts find at the prices that were found the first time.
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

/// More than the seeds of one trial.
const SEEDS_OF_TRIALS: u64 = 1000;

/// The best fit of prices among the trials.
fn best(trials: &[Trial], cells: &[usize]) -> Fit {
    let fits: Vec<Fit> = trials.par_iter().map(|trial| fit_prices(trial, cells)).collect();
    let best = fits.into_iter().min_by(|one, other| one.misfit.total_cmp(&other.misfit));
    best.expect("there are trials")
}

/// Fits the prices that are marked as fitted.
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

/// A setting with the value of [`TIMED`] that is this many steps from another one's.
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
