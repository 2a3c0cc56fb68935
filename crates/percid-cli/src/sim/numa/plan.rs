//! The simulations of `percid sim numa`.

use percid_sim::numa::Setup;
use percid_sim::numa::comparison::{Comparison, RULE_SETS, RuleSet, RuleSetRow};

use crate::cli::{MemoryArguments, ScanRules};
use crate::sim::sweeps::{Sweeps, check_runs, sweeps};
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_command::watch::watched;

/// The requested simulations.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) setup: Setup,
    pub(super) sweeps: Sweeps,
    rules: Vec<&'static RuleSet>,
    pub(super) seeds: u64,
    pub(super) seed: u64,
}

impl Plan {
    pub(super) fn from_arguments(arguments: &MemoryArguments) -> Result<Plan, Failure> {
        let machine = presets::machine(&arguments.machine, Numbering::Dense)?;
        let workload = presets::memory_workload(&arguments.workload)?;
        let mut setup = Setup::from_machine(&machine, workload);
        let sweeps = sweeps(&arguments.set, |name, value| setup.set(name, value))?;
        let rules = chosen(&arguments.rules);
        let (seeds, seed) = (arguments.seeds, arguments.seed);
        check_runs(&sweeps, rules.len(), seeds)?;
        Ok(Plan { setup, sweeps, rules, seeds, seed })
    }

    /// Returns the rows of all runs that were finished before Ctrl-C.
    pub(super) fn simulate(&self, interrupt: &Interrupt) -> Result<Vec<RuleSetRow>, Failure> {
        let Plan { setup, sweeps, rules, seeds, seed } = self;
        let comparison = Comparison { setup, sweeps, rules, seeds: *seeds, seed: *seed };
        let rows = watched("sim numa", Some(comparison.runs()), interrupt, |control| {
            comparison.simulate(control)
        });
        rows.map_err(|fault| Failure::Usage(format!("{}: {fault}", setup.workload.name)))
    }
}

/// Returns the chosen rules, each once, in their order.
fn chosen(choices: &[ScanRules]) -> Vec<&'static RuleSet> {
    let mut chosen: Vec<&'static RuleSet> = Vec::new();
    let all = choices.iter().flat_map(|choice| match choice {
        ScanRules::All => RULE_SETS.iter().collect(),
        ScanRules::One(rules) => vec![*rules],
    });
    for rules in all {
        if chosen.iter().all(|known| known.name != rules.name) {
            chosen.push(rules);
        }
    }
    chosen
}
