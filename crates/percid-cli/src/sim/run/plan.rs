//! The simulations of `percid sim run`.

use std::collections::BTreeSet;

use percid_sim::comparison::{self, Comparison, Row};
use percid_sim::machine::Machine;
use percid_sim::policies::PolicySpec;
use percid_sim::workload::Workload;

use crate::cli::RunArguments;
use percid_command::arguments::chosen;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_command::watch::watched;

/// Maximum number of runs of one comparison: more would take days, and their results much memory.
const MOST_RUNS: u128 = 10_000_000;

/// Maximum number of spans of IDs on CPUs that a report shows, of all policies together: a few
/// hundred bytes each.
const SPANS: usize = 20_000;

/// The requested simulations.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) machine: Machine,
    pub(super) workload: Workload,
    /// The requested name of the workload.
    workload_name: String,
    policies: Vec<&'static PolicySpec>,
    pub(super) sweeps: Vec<(String, Vec<f64>)>,
    pub(super) seeds: u64,
    pub(super) seed: u64,
}

impl Plan {
    pub(super) fn from_arguments(arguments: &RunArguments) -> Result<Plan, Failure> {
        let mut machine = presets::machine(&arguments.machine, Numbering::Dense)?;
        let mut workload = presets::workload(&arguments.workload)?;
        if let Some(memory) = arguments.memory {
            workload.set_memory(memory);
        }
        let mut sweeps = Vec::new();
        let mut seen = BTreeSet::new();
        for setting in &arguments.set {
            let value = setting.values[0];
            let set = comparison::set(&mut machine, &mut workload, &setting.name, value);
            set.map_err(|fault| Failure::Usage(format!("--set {}: {fault}", setting.name)))?;
            if !seen.insert(&setting.name) {
                let expected = "expected once, with all its values";
                return Err(Failure::Usage(format!("--set {}: {expected}", setting.name)));
            }
            if setting.values.len() > 1 {
                sweeps.push((setting.name.clone(), setting.values.clone()));
            }
        }
        let policies = chosen(&arguments.policy);
        let workload_name = arguments.workload.clone();
        let (seeds, seed) = (arguments.seeds, arguments.seed);
        let plan = Plan { machine, workload, workload_name, policies, sweeps, seeds, seed };
        plan.check_size()?;
        Ok(plan)
    }

    fn check_size(&self) -> Result<(), Failure> {
        let each = self.policies.len() as u128 * u128::from(self.seeds);
        let lengths = self.sweeps.iter().map(|(_, values)| values.len() as u128);
        let runs = lengths.fold(each, u128::saturating_mul);
        if runs > MOST_RUNS {
            let message = format!("expected at most {MOST_RUNS} runs in all, found {runs}");
            return Err(Failure::Usage(message));
        }
        Ok(())
    }

    /// Returns the rows of all runs that were finished before Ctrl-C.
    pub(super) fn simulate(
        &self,
        with_spans: bool,
        interrupt: &Interrupt,
    ) -> Result<Vec<Row>, Failure> {
        let comparison = Comparison {
            machine: &self.machine,
            workload: &self.workload,
            sweeps: &self.sweeps,
            policies: &self.policies,
            seeds: self.seeds,
            seed: self.seed,
            spans: if with_spans { SPANS / self.policies.len().max(1) } else { 0 },
        };
        let events = comparison.expected_events().ok();
        let rows = watched("sim run", events, interrupt, |counters| comparison.simulate(counters));
        rows.map_err(|fault| Failure::Usage(format!("{}: {fault}", self.workload_name)))
    }
}
