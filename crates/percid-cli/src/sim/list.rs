//! `percid sim list`: the machines, workloads and policies that can be simulated.

use std::collections::BTreeMap;
use std::fmt;

use percid_sim::machine::Machine;
use percid_sim::mask::{self, MaskPolicy};
use percid_sim::numa;
use percid_sim::policies;
use percid_sim::policies::releases::{RELEASES, Releases};
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
    memory_workloads: Vec<MemoryWorkloadEntry>,
    policies: Vec<PolicyEntry>,
    mask_workloads: Vec<MaskWorkloadEntry>,
    mask_policies: Vec<PolicyEntry>,
    releases: Vec<ReleaseEntry>,
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
    /// The parameters with their defaults.
    parameters: BTreeMap<String, f64>,
}

/// A workload of `percid sim numa`.
#[derive(Debug, Serialize)]
struct MemoryWorkloadEntry {
    name: &'static str,
    about: String,
    processes: u32,
    threads: u32,
}

#[derive(Debug, Serialize)]
struct MaskWorkloadEntry {
    name: &'static str,
    about: String,
    /// The parameters with their defaults.
    parameters: BTreeMap<String, f64>,
}

#[derive(Debug, Serialize)]
struct PolicyEntry {
    name: &'static str,
    about: &'static str,
}

/// Releases of kernels that are names of a policy.
#[derive(Debug, Serialize)]
struct ReleaseEntry {
    first: &'static str,
    /// `None` if all later ones are names of it too.
    last: Option<&'static str>,
    policy: &'static str,
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
        let memory_workload = |name: &'static str| {
            let numa::Workload { about, processes, threads, .. } = numa::Workload::preset(name)?;
            Some(MemoryWorkloadEntry { name, about, processes, threads })
        };
        let policy =
            |entry: &policies::PolicySpec| PolicyEntry { name: entry.name, about: entry.about };
        Catalogue {
            machines: Machine::presets().filter_map(machine).collect(),
            workloads: Workload::presets().filter_map(workload).collect(),
            memory_workloads: numa::Workload::presets().filter_map(memory_workload).collect(),
            policies: policies::ALL.iter().map(policy).collect(),
            mask_workloads: mask::Workload::presets()
                .filter_map(MaskWorkloadEntry::from_name)
                .collect(),
            mask_policies: MaskPolicy::ALL
                .map(|policy| PolicyEntry { name: policy.name(), about: policy.about() })
                .into(),
            releases: RELEASES.into_iter().map(ReleaseEntry::from).collect(),
        }
    }
}

impl From<Releases> for ReleaseEntry {
    fn from(releases: Releases) -> ReleaseEntry {
        let Releases { first, last, policy, about } = releases;
        ReleaseEntry { first, last, policy, about }
    }
}

impl ReleaseEntry {
    fn names(&self) -> String {
        match self.last {
            Some(last) if last == self.first => last.to_owned(),
            Some(last) => format!("{} to {last}", self.first),
            None => format!("{} and later", self.first),
        }
    }
}

impl MaskWorkloadEntry {
    fn from_name(name: &'static str) -> Option<MaskWorkloadEntry> {
        let workload = mask::Workload::preset(name)?;
        let numbers = workload.numbers().into_iter();
        let parameters = numbers.map(|number| (number.name.to_owned(), number.value)).collect();
        Some(MaskWorkloadEntry { name, about: workload.about, parameters })
    }
}

fn policies_table(policies: &[PolicyEntry]) -> TextTable {
    let mut table = TextTable::new([("name", Align::Left), ("", Align::Left)]);
    for policy in policies {
        table.row(vec![policy.name.to_owned(), policy.about.to_owned()]);
    }
    table
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
        writeln!(f, "\nWorkloads of memory, for percid sim numa")?;
        for workload in &self.memory_workloads {
            let MemoryWorkloadEntry { name, about, processes, threads } = workload;
            writeln!(f, "  {name}: {about} (processes={processes} threads={threads})")?;
        }
        writeln!(f, "\nPolicies\n{}", policies_table(&self.policies))?;
        writeln!(f, "Releases of kernels that stand for a policy, such as linux-6.6.30")?;
        let columns = ["release", "policy", ""].map(|name| (name, Align::Left));
        let mut table = TextTable::new(columns);
        for release in &self.releases {
            let ReleaseEntry { policy, about, .. } = release;
            table.row(vec![release.names(), (*policy).to_owned(), (*about).to_owned()]);
        }
        writeln!(f, "{table}\nWorkloads of `percid sim mask` and their parameters")?;
        for workload in &self.mask_workloads {
            writeln!(f, "  {}: {}", workload.name, workload.about)?;
            writeln!(f, "      {}", settings(&workload.parameters))?;
        }
        write!(f, "\nPolicies of `percid sim mask`\n{}", policies_table(&self.mask_policies))
    }
}
