//! Simulated repetitions of the published experiment.

use percid_rules::scan::Rules;
use serde::Serialize;

use super::outcome::{Counts, Outcome};
use super::run;
use super::setup::Setup;
use crate::published;
use crate::random::Random;

/// Number of runs of the benchmark over which the published counts are summed.
pub(super) const ITERATIONS: u32 = 7;

/// A series of the published experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Series {
    /// Linux 6.6-rc2, which only counts.
    Base,
    /// Linux 6.6-rc2 with the whole series.
    Selective,
}

impl Series {
    /// Both series.
    pub const ALL: [Series; 2] = [Series::Base, Series::Selective];

    /// Returns the name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Series::Base => "base",
            Series::Selective => "selective",
        }
    }

    pub(super) fn rules(self) -> Rules {
        match self {
            Series::Base => Rules::BASE,
            Series::Selective => Rules::SELECTIVE,
        }
    }

    pub(super) fn published(self, row: &published::Numa) -> f64 {
        match self {
            Series::Base => row.base,
            Series::Selective => row.selective,
        }
    }
}

/// Repetitions of the experiment, each of [`ITERATIONS`] runs of all processes.
pub(super) struct Experiment {
    /// Sums of each repetition.
    pub(super) counts: Vec<Counts>,
    /// Mean run time of each repetition, in seconds.
    pub(super) elapsed: Vec<f64>,
    /// Time of each run, in seconds, grouped by repetition.
    pub(super) iterations: Vec<f64>,
    /// Outcomes of all processes.
    pub(super) processes: Vec<Outcome>,
}

impl Experiment {
    pub(super) fn run(setup: &Setup, rules: &Rules, seed: u64, repetitions: u32) -> Experiment {
        let mut seeds = Random::new(seed);
        let mut experiment = Experiment {
            counts: Vec::new(),
            elapsed: Vec::new(),
            iterations: Vec::new(),
            processes: Vec::new(),
        };
        for _ in 0..repetitions {
            let (mut counts, mut elapsed) = (Counts::default(), 0.0);
            for _ in 0..ITERATIONS {
                let time = experiment.once(setup, rules, &mut seeds, &mut counts);
                experiment.iterations.push(time);
                elapsed += time;
            }
            experiment.counts.push(counts);
            experiment.elapsed.push(elapsed / f64::from(ITERATIONS));
        }
        experiment
    }

    /// Runs the benchmark once. Returns the time of its slowest process in seconds.
    fn once(&mut self, setup: &Setup, rules: &Rules, seeds: &mut Random, sum: &mut Counts) -> f64 {
        let mut elapsed = 0.0f64;
        for number in 0..setup.workload.processes {
            let outcome = run::process(setup, rules, false, number, seeds.below(u64::MAX));
            sum.add(&outcome.counts);
            elapsed = elapsed.max(outcome.elapsed_s());
            self.processes.push(outcome);
        }
        elapsed
    }

    pub(super) fn mean(&self, value: impl Fn(&Counts) -> f64) -> f64 {
        mean(&self.values(value))
    }

    pub(super) fn values(&self, value: impl Fn(&Counts) -> f64) -> Vec<f64> {
        self.counts.iter().map(value).collect()
    }

    /// Applies a function to the run times of each repetition, and returns the mean of the results.
    pub(super) fn of_runs(&self, value: impl Fn(&[f64]) -> f64) -> f64 {
        let repetitions = self.iterations.chunks(ITERATIONS as usize);
        mean(&repetitions.map(value).collect::<Vec<f64>>())
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation of a sample; 0 for fewer than two values.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt()
}
