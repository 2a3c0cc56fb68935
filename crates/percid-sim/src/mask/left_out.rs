//! The published values of the mask, each predicted by a fit to the others.

use super::paper::Runs;
use super::parameters::Parameters;
use super::policy::MaskPolicy;
use crate::paper::leave_one_out::{LeaveOneOut, Refitted, leave_one_out};
use crate::paper::prediction::Published;
use crate::published;
use crate::run_control::RunControl;

/// Number of runs of each policy in a step of a fit, and their turns per CPU.
const RUNS: usize = 1;
const TURNS: u32 = 300;

/// Number of fitted numbers.
const FITTED: usize = 3;

struct Run(Parameters);

/// Fits the three numbers without each of the six published values. Returns `None` if it was
/// stopped.
pub fn left_out(seed: u64, progress: &RunControl) -> Option<LeaveOneOut> {
    let run = Run(Parameters { turns_per_cpu: TURNS, ..Parameters::default() });
    leave_one_out(&run, FITTED, seed, progress)
}

impl Refitted for Run {
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        let Parameters { work_us, scheduler_us, alone_speed, .. } = self.0;
        vec![("work_us", work_us), ("scheduler_us", scheduler_us), ("alone_speed", alone_speed)]
    }

    fn published(&self) -> Vec<(String, Published)> {
        let rows = published::mask();
        let row = |metric: &str| rows.iter().find(|row| row.metric == metric).expect("a metric");
        let low = row("mask_load_latency_cycles_low");
        let high = row("mask_load_latency_cycles_high");
        let share = row("schedule_share_of_cycles_percent");
        let gain = |metric| {
            let row = row(metric);
            Published::Exactly(100.0 * (row.after / row.before - 1.0))
        };
        let values = [
            ("latency before", Published::Between(low.before, high.before)),
            ("latency after", Published::Between(low.after, high.after)),
            ("share before", Published::Exactly(share.before)),
            ("share after", Published::Exactly(share.after)),
            ("mean throughput", gain("linpack_mean_gflops")),
            ("peak throughput", gain("linpack_peak_gflops")),
        ];
        values.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn simulate(&self, factors: &[f64], seed: u64, progress: &RunControl) -> Option<Vec<f64>> {
        let mut run = self.0.clone();
        run.work_us *= factors[0];
        run.scheduler_us *= factors[1];
        run.alone_speed *= factors[2];
        let runs = Runs::watched(&run, MaskPolicy::TestFirst, RUNS, seed, &progress.stop)?;
        Some(runs.compared().map(|(_, value)| value).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of both lists is the same: the fitted numbers give the published values.
    #[test]
    fn the_values_are_those_of_the_comparison() {
        let run = Run(Parameters::default());
        let values = run.simulate(&[1.0; FITTED], 1, &RunControl::default());
        let values = values.expect("nobody stops it");
        let published = run.published();
        assert_eq!(values.len(), published.len());
        for at in [2, 3, 4] {
            let (name, published) = &published[at];
            let error = published.error(values[at]).expect("it is not 0");
            assert!(error.abs() < 0.15, "{name}: {error}");
        }
        assert_eq!(run.numbers().len(), FITTED);
    }
}
