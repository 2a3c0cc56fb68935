//! The simulator's forecast for this machine, before any measurement.

use std::sync::atomic::Ordering::Relaxed;

use percid_command::exit::Failure;
use percid_command::this_machine::{self, Numbering};
use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::{Machine, Sourced};
use percid_sim::policies::PolicySpec;
use percid_sim::run_control::RunControl;
use percid_sim::workload::{Memory, Workload};
use rayon::prelude::*;

/// The machine of the published values, with its cost model.
pub(super) const PUBLISHED: &str = "epyc-9654";

/// Simulated runs of a cell. The state that threads meet depends on the times of the ticks, so many
/// runs are needed; `percid sim published` has as many.
const RUNS: u64 = 100;

/// Parameters of the measurement except the CPUs, the delay and the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) bursts: u64,
    pub(super) warmup: u64,
    pub(super) prefault: bool,
    pub(super) seed: u64,
}

/// One value to forecast.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) cpus: Vec<u32>,
    pub(super) delay_ms: u64,
    pub(super) policy: &'static PolicySpec,
}

/// Forecasts in nanoseconds per burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forecast {
    /// With the cost model of the published machine.
    pub(super) ns: f64,
    /// The same, but with the cost of a hot burst as measured here.
    pub(super) with_hot_ns: f64,
}

/// This machine, with both cost models.
#[derive(Debug)]
pub(super) struct Forecaster {
    conditions: Conditions,
    published_prices: Machine,
    hot_measured: Machine,
}

impl Forecaster {
    /// Reads the machine and measures a hot burst, which takes a few milliseconds.
    pub(super) fn new(conditions: Conditions) -> Result<Self, Failure> {
        let mut hot_measured = this_machine::machine(Numbering::Kernel)?;
        let published = Machine::preset(PUBLISHED).expect("the published machine is a preset");
        let origin = "not charged: what the kernel does is part of the fitted numbers".to_owned();
        hot_measured.costs.scan_cpu_ns = Sourced { value: 0.0, origin, fitted: false };
        let mut published_prices = hot_measured.clone();
        published_prices.costs.hot_ns = published.costs.hot_ns;
        Ok(Forecaster { conditions, published_prices, hot_measured })
    }

    /// Returns the time of a hot burst on the published machine and here, in nanoseconds.
    pub(super) fn hot_ns(&self) -> [f64; 2] {
        [&self.published_prices, &self.hot_measured].map(|machine| machine.costs.hot_ns.value)
    }

    /// Answers all questions, on all CPUs; `None` if it is stopped. Counts the simulated runs;
    /// [`Forecaster::runs`] returns their total number.
    pub(super) fn answer(
        &self,
        questions: &[Question],
        control: &RunControl,
    ) -> Result<Option<Vec<Forecast>>, Failure> {
        let forecasts = questions.par_iter().map(|question| {
            let ns = self.simulate(&self.published_prices, question, control)?;
            let with_hot_ns = self.simulate(&self.hot_measured, question, control)?;
            Ok(ns.zip(with_hot_ns).map(|(ns, with_hot_ns)| Forecast { ns, with_hot_ns }))
        });
        forecasts.collect()
    }

    /// Returns the number of simulated runs for these questions.
    pub(super) fn runs(questions: &[Question]) -> u64 {
        2 * RUNS * questions.len() as u64
    }

    fn simulate(
        &self,
        machine: &Machine,
        question: &Question,
        control: &RunControl,
    ) -> Result<Option<f64>, Failure> {
        let workload = self.workload(question.delay_ms).map_err(refused)?;
        let program = workload.program_on(question.cpus.clone()).map_err(refused)?;
        let mut all = Outcome::default();
        for run in 0..RUNS {
            let seed = self.conditions.seed.wrapping_add(run);
            let one = Simulation::new(machine, &program, question.policy, seed)
                .run(&control.stop)
                .map_err(|violation| Failure::Usage(violation.to_string()))?;
            if control.stop.load(Relaxed) {
                return Ok(None);
            }
            all.add(&one);
            control.done.fetch_add(1, Relaxed);
        }
        Ok(Some(all.ns_per_burst()))
    }

    fn workload(&self, delay_ms: u64) -> Result<Workload, percid_sim::file::Error> {
        let mut workload = Workload::preset("intermittent").expect("the benchmark is a preset");
        let Conditions { bursts, warmup, prefault, .. } = self.conditions;
        for (name, value) in
            [("delay_ms", delay_ms), ("warmup", warmup), ("later", bursts.saturating_sub(1))]
        {
            workload.set(name, value as f64)?;
        }
        if prefault {
            workload.memory = Memory::PreFaulted;
        }
        Ok(workload)
    }
}

fn refused(error: percid_sim::file::Error) -> Failure {
    Failure::Usage(format!("the simulator cannot forecast this: {error}"))
}
