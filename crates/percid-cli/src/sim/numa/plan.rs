//! The simulations of `percid sim numa`.

use std::collections::BTreeSet;

use percid_sim::numa::Setup;
use percid_sim::numa::comparison::{Comparison, RULE_SETS, RuleSet, RuleSetRow};

use crate::cli::{MemoryArguments, ScanRules};
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_command::watch::watched;

/// Maximum number of runs of one comparison: more would take days.
const MOST_RUNS: u128 = 1_000_000;

/// The requested simulations.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) setup: Setup,
    pub(super) sweeps: Vec<(String, Vec<f64>)>,
    rules: Vec<&'static RuleSet>,
    pub(super) seeds: u64,
    pub(super) seed: u64,
}

impl Plan {
    pub(super) fn from_arguments(arguments: &MemoryArguments) -> Result<Plan, Failure> {
        let machine = presets::machine(&arguments.machine, Numbering::Dense)?;
        let workload = presets::memory_workload(&arguments.workload)?;
        let mut setup = Setup::from_machine(&machine, workload);
        let mut sweeps = Vec::new();
        let mut seen = BTreeSet::new();
        for setting in &arguments.set {
            let name = &setting.name;
            let set = setup.set(name, setting.values[0]);
            set.map_err(|fault| Failure::Usage(format!("--set {name}: {fault}")))?;
            if !seen.insert(name) {
                let expected = "expected once, with all its values";
                return Err(Failure::Usage(format!("--set {name}: {expected}")));
            }
            if setting.values.len() > 1 {
                sweeps.push((name.clone(), setting.values.clone()));
            }
        }
        let rules = chosen(&arguments.rules);
        let (seeds, seed) = (arguments.seeds, arguments.seed);
        let plan = Plan { setup, sweeps, rules, seeds, seed };
        plan.check_size()?;
        Ok(plan)
    }

    fn check_size(&self) -> Result<(), Failure> {
        let each = self.rules.len() as u128 * u128::from(self.seeds);
        let lengths = self.sweeps.iter().map(|(_, values)| values.len() as u128);
        let runs = lengths.fold(each, u128::saturating_mul);
        if runs > MOST_RUNS {
            let message = format!("expected at most {MOST_RUNS} runs in all, found {runs}");
            return Err(Failure::Usage(message));
        }
        Ok(())
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
