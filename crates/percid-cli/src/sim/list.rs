//! `percid sim list`: what can be simulated.

use std::collections::BTreeMap;
use std::fmt;

use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::Workload;
use serde::Serialize;

use super::numbers::settings;
use percid_command::exit::{Exit, Failure};
use percid_command::output;
use percid_command::presets::THIS;
use percid_command::text_table::{Align, TextTable};

/// The document of `percid sim list --json`.
#[derive(Debug, Serialize)]
struct Catalogue {
    machines: Vec<MachineEntry>,
    workloads: Vec<WorkloadEntry>,
    policies: Vec<PolicyEntry>,
}

#[derive(Debug, Serialize)]
struct MachineEntry {
    name: &'static str,
    about: String,
    cpus: u32,
}

#[derive(Debug, Serialize)]
struct WorkloadEntry {
    name: &'static str,
    about: String,
    memory: &'static str,
    /// With the values that they have unless they are set.
    parameters: BTreeMap<String, f64>,
}

#[derive(Debug, Serialize)]
struct PolicyEntry {
    name: &'static str,
    about: &'static str,
}

pub(crate) fn run(json: bool) -> Result<Exit, Failure> {
    let catalogue = Catalogue::read();
    if json { output::print_json(&catalogue) } else { output::print_text(&catalogue) }?;
    Ok(Exit::Complete)
}

impl Catalogue {
    fn read() -> Catalogue {
        let machine = |name: &'static str| {
            let machine = Machine::preset(name)?;
            Some(MachineEntry { name, cpus: machine.topology.cpus(), about: machine.name })
        };
        let workload = |name: &'static str| {
            let Workload { about, memory, parameters, .. } = Workload::preset(name)?;
            Some(WorkloadEntry { name, about, memory: memory.name(), parameters })
        };
        let policy = |entry: &policies::Entry| PolicyEntry { name: entry.name, about: entry.about };
        Catalogue {
            machines: Machine::presets().filter_map(machine).collect(),
            workloads: Workload::presets().filter_map(workload).collect(),
            policies: policies::ALL.iter().map(policy).collect(),
        }
    }
}

impl fmt::Display for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Machines")?;
        let mut table =
            TextTable::new([("name", Align::Left), ("CPUs", Align::Right), ("", Align::Left)]);
        let here = ["", "this machine: CPUs and caches as they are, most costs assumed"];
        table.row([THIS, here[0], here[1]].map(str::to_owned).into());
        for machine in &self.machines {
            let MachineEntry { name, about, cpus } = machine;
            table.row(vec![(*name).to_owned(), cpus.to_string(), about.clone()]);
        }
        writeln!(f, "{table}\nWorkloads and their parameters")?;
        for workload in &self.workloads {
            let WorkloadEntry { name, about, memory, parameters } = workload;
            writeln!(f, "  {name}: {about} ({memory})")?;
            writeln!(f, "      {}", settings(parameters))?;
        }
        writeln!(f, "\nPolicies")?;
        let mut table = TextTable::new([("name", Align::Left), ("", Align::Left)]);
        for policy in &self.policies {
            table.row(vec![policy.name.to_owned(), policy.about.to_owned()]);
        }
        write!(f, "{table}")
    }
}
