//! `percid sim run`: policies beside each other on one machine and workload.

mod figures;
mod page;
mod text;

use std::collections::BTreeSet;

use percid_sim::comparison::{self, Comparison};
use percid_sim::machine::Machine;
use percid_sim::policies::Entry;
use percid_sim::workload::Workload;

use crate::cli::RunArguments;
use percid_command::arguments::chosen;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::presets;
use percid_command::report::Report;
use percid_command::this_machine::Numbering;
use percid_command::watch::watched;

use figures::Results;

/// Runs of one comparison: more would take days, and their results much memory.
const MOST_RUNS: u128 = 10_000_000;

/// Stays of IDs on CPUs that a page shows, of all policies together: some hundred bytes each.
const SPANS: usize = 20_000;

pub(crate) fn run(arguments: &RunArguments, json: bool) -> Result<Exit, Failure> {
    let plan = Plan::of(arguments)?;
    let report = Report::to(arguments.html.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let results = plan.simulate(report.is_wanted(), &interrupt)?;
    let printed = if json { output::print_json(&results) } else { output::print_text(&results) };
    if results.interrupted && !json {
        complain(format_args!("interrupted: rows are those of the runs that were over"));
    }
    let exit = if results.interrupted { Exit::Interrupted } else { Exit::Complete };
    report.write(printed, || page::page(&results), exit)
}

/// What to simulate.
#[derive(Debug)]
struct Plan {
    machine: Machine,
    workload: Workload,
    /// How the workload was asked for.
    workload_name: String,
    policies: Vec<&'static Entry>,
    sweeps: Vec<(String, Vec<f64>)>,
    seeds: u64,
    seed: u64,
}

impl Plan {
    fn of(arguments: &RunArguments) -> Result<Plan, Failure> {
        let mut machine = presets::machine(&arguments.machine, Numbering::Dense)?;
        let mut workload = presets::workload(&arguments.workload)?;
        workload.memory = arguments.memory.unwrap_or(workload.memory);
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

    fn simulate(&self, with_spans: bool, interrupt: &Interrupt) -> Result<Results, Failure> {
        let comparison = Comparison {
            machine: &self.machine,
            workload: &self.workload,
            sweeps: &self.sweeps,
            policies: &self.policies,
            seeds: self.seeds,
            seed: self.seed,
            spans: if with_spans { SPANS / self.policies.len().max(1) } else { 0 },
        };
        let rows = watched("sim run", Some(comparison.runs()), interrupt, |counters| {
            comparison.simulate(counters)
        });
        let named = |fault| Failure::Usage(format!("{}: {fault}", self.workload_name));
        Ok(Results::new(self, rows.map_err(named)?, interrupt.pressed()))
    }
}
