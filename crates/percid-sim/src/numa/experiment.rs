//! Repetitions of the published experiment, simulated.

use percid_rules::scan::Rules;
use serde::Serialize;

use super::outcome::{Counts, Outcome};
use super::run;
use super::setup::Setup;
use crate::published;
use crate::random::Random;

/// The published counts are sums over so many runs of the benchmark.
pub(super) const ITERATIONS: u32 = 7;

/// A series of the published experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Series {
    /// Linux 6.6-rc2, which only counts.
    Base,
    /// The same with the whole series.
    Selective,
}

impl Series {
    /// Both of them.
    pub const ALL: [Series; 2] = [Series::Base, Series::Selective];

    /// The name in tables.
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

/// Repetitions of the experiment: `iterations` runs of all processes each.
pub(super) struct Experiment {
    /// The sums of each repetition.
    pub(super) counts: Vec<Counts>,
    /// The mean time of the runs of each repetition, in seconds.
    pub(super) elapsed: Vec<f64>,
    /// The time of each run, in seconds; those of a repetition follow each other.
    pub(super) iterations: Vec<f64>,
    /// Every process.
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

    /// Runs the benchmark once. Its time, in seconds, is that of its slowest process.
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

    /// The mean over the repetitions of what becomes of the times of the runs of each.
    pub(super) fn of_runs(&self, value: impl Fn(&[f64]) -> f64) -> f64 {
        let repetitions = self.iterations.chunks(ITERATIONS as usize);
        mean(&repetitions.map(value).collect::<Vec<f64>>())
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of a sample; 0 of less than two values.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt()
}
