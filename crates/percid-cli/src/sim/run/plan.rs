//! The simulations of `percid sim run`.

use percid_sim::comparison::{self, Comparison, Row};
use percid_sim::machine::Machine;
use percid_sim::policies::PolicySpec;
use percid_sim::workload::Workload;

use crate::cli::RunArguments;
use crate::sim::sweeps::{Sweeps, check_runs, sweeps};
use percid_command::arguments::chosen;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_command::watch::watched;

/// Maximum number of spans of IDs on CPUs that a report shows, of all policies together: a few
/// hundred bytes each.
const SPANS: usize = 20_000;

/// The requested simulations.
#[derive(Debug)]
pub(super) struct Plan {
    machine: Machine,
    workload: Workload,
    /// The requested name of the workload.
    workload_name: String,
    policies: Vec<&'static PolicySpec>,
    sweeps: Sweeps,
    seeds: u64,
    seed: u64,
}

impl Plan {
    pub(super) fn from_arguments(arguments: &RunArguments) -> Result<Plan, Failure> {
        let mut machine = presets::machine(&arguments.machine, Numbering::Dense)?;
        let mut workload = presets::workload(&arguments.workload)?;
        if let Some(memory) = arguments.memory {
            workload.set_memory(memory);
        }
        let sweeps = sweeps(&arguments.set, |name, value| {
            comparison::set(&mut machine, &mut workload, name, value)
        })?;
        let policies = chosen(&arguments.policy);
        let workload_name = arguments.workload.clone();
        let (seeds, seed) = (arguments.seeds, arguments.seed);
        check_runs(&sweeps, policies.len(), seeds)?;
        Ok(Plan { machine, workload, workload_name, policies, sweeps, seeds, seed })
    }

    /// Returns the comparison, in which a run records at most `spans` spans.
    pub(super) fn comparison(&self, spans: usize) -> Comparison<'_> {
        Comparison {
            machine: &self.machine,
            workload: &self.workload,
            sweeps: &self.sweeps,
            policies: &self.policies,
            seeds: self.seeds,
            seed: self.seed,
            spans,
        }
    }

    /// Returns the rows of all runs that were finished before Ctrl-C.
    pub(super) fn simulate(
        &self,
        with_spans: bool,
        interrupt: &Interrupt,
    ) -> Result<Vec<Row>, Failure> {
        let spans = if with_spans { SPANS / self.policies.len().max(1) } else { 0 };
        let comparison = self.comparison(spans);
        let events = comparison.expected_events().ok();
        let rows = watched("sim run", events, interrupt, |counters| comparison.simulate(counters));
        rows.map_err(|fault| Failure::Usage(format!("{}: {fault}", self.workload_name)))
    }
}
