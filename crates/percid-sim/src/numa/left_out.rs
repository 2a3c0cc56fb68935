//! The published counts and times of the NUMA scan, each predicted by a fit to the others.

use super::experiment::{Experiment, Series, mean};
use super::outcome::REASONS;
use super::setup::Setup;
use crate::paper::leave_one_out::{LeaveOneOut, Refitted, leave_one_out};
use crate::paper::prediction::Published;
use crate::published;
use crate::run_control::RunControl;
use crate::time::Ns;

struct Scan(Setup);

/// Fits the numbers without each of the published counts that is not 0, and without each time.
/// Choices without a number keep their values, and so do numbers that the processor times fix, and
/// the share that is 0. Returns `None` if it was stopped.
pub fn left_out(seed: u64, progress: &RunControl) -> Option<LeaveOneOut> {
    let scan = Scan(Setup::published());
    let fitted = scan.0.list().iter().filter(|parameter| parameter.fitted).count();
    leave_one_out(&scan, fitted, seed, progress)
}

impl Refitted for Scan {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        numbers(&self.0)
    }

    fn multiplied(&self, factors: &[f64]) -> Vec<f64> {
        let setup = self.with(factors).unwrap_or_else(|| self.0.clone());
        numbers(&setup).into_iter().map(|(_, value)| value).collect()
    }

    fn published(&self) -> Vec<(String, Published)> {
        let reasons = published::numa_reasons();
        let metrics = published::numa_metrics();
        let time = metrics.iter().find(|row| row.reason == "elapsed_mean_s").expect("a time");
        let mut all = Vec::new();
        for series in Series::ALL {
            for reason in REASONS {
                let row = reasons.iter().find(|row| row.reason == reason.name());
                let value = row.map_or(0.0, |row| series.published(row));
                all.push((format!("{}: {}", series.name(), reason.name()), value));
            }
            all.push((format!("{}: elapsed, s", series.name()), series.published(time)));
        }
        let missable = all.into_iter().filter(|(_, value)| *value != 0.0);
        missable.map(|(name, value)| (name, Published::Exactly(value))).collect()
    }

    fn simulate(&self, factors: &[f64], seed: u64, progress: &RunControl) -> Option<Vec<f64>> {
        if progress.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return None;
        }
        let setup = self.with(factors)?;
        let names: Vec<String> = self.published().into_iter().map(|(name, _)| name).collect();
        let mut values = Vec::new();
        for series in Series::ALL {
            let experiment = Experiment::run(&setup, &series.rules(), seed, 1);
            for reason in REASONS {
                if names.contains(&format!("{}: {}", series.name(), reason.name())) {
                    let count =
                        |counts: &super::outcome::Counts| counts.reasons[reason as usize] as f64;
                    values.push(experiment.mean(count));
                }
            }
            values.push(mean(&experiment.elapsed));
        }
        Some(values)
    }
}

/// Returns the numbers that are fitted again.
fn numbers(setup: &Setup) -> Vec<(&'static str, f64)> {
    let Setup { workload, system, parameters, .. } = setup;
    vec![
        ("main_share", parameters.main_share),
        ("file_regions", f64::from(parameters.file_regions)),
        ("data_regions", f64::from(parameters.data_regions)),
        ("preparation_s", workload.preparation.seconds),
        ("stay_s", parameters.stay as f64 / 1e9),
        ("speed_gb_s", system.speed / 1e9),
        ("remote_cost", system.remote_cost),
    ]
}

impl Scan {
    /// Returns the setup with the numbers multiplied, if it is allowed. Counts are rounded.
    fn with(&self, factors: &[f64]) -> Option<Setup> {
        let mut setup = self.0.clone();
        let parameters = &mut setup.parameters;
        parameters.main_share = (parameters.main_share * factors[0]).min(1.0);
        let count =
            |count: u32, factor: f64| (f64::from(count) * factor).round().min(1000.0) as u32;
        parameters.file_regions = count(parameters.file_regions, factors[1]);
        parameters.data_regions = count(parameters.data_regions, factors[2]);
        parameters.stay = (parameters.stay as f64 * factors[4]).min(1e18) as Ns;
        setup.workload.preparation.seconds *= factors[3];
        setup.system.speed *= factors[5];
        setup.system.remote_cost = (setup.system.remote_cost * factors[6]).max(1.0);
        setup.check().is_ok().then_some(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_are_those_of_the_comparison() {
        let scan = Scan(Setup::published());
        let factors = vec![1.0; scan.numbers().len()];
        assert_eq!(scan.with(&factors).as_ref(), Some(&scan.0));
        let values = scan.simulate(&factors, 1, &RunControl::default()).expect("nobody stops it");
        let published = scan.published();
        assert_eq!((values.len(), published.len()), (14, 14));
        for ((name, published), value) in published.iter().zip(values) {
            let error = published.error(value).expect("it is not 0");
            assert!(error.abs() < 0.6, "{name}: {error}");
        }
    }

    #[test]
    fn every_number_changes_the_setup() {
        let scan = Scan(Setup::published());
        for at in 0..scan.numbers().len() {
            let mut factors = vec![1.0; scan.numbers().len()];
            factors[at] = 0.75;
            assert_ne!(scan.with(&factors).as_ref(), Some(&scan.0), "{:?}", scan.numbers()[at]);
        }
    }
}
