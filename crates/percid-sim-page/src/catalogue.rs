//! The machines, workloads and policies that the page offers.

use std::collections::BTreeMap;

use percid_sim::machine::Machine;
use percid_sim::policies::{self, PolicySpec};
use percid_sim::workload::Workload;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Catalogue {
    machines: Vec<MachineEntry>,
    workloads: Vec<WorkloadEntry>,
    policies: Vec<PolicyEntry>,
}

#[derive(Serialize)]
struct MachineEntry {
    name: &'static str,
    about: String,
    cpus: u32,
}

#[derive(Serialize)]
struct WorkloadEntry {
    name: &'static str,
    about: String,
    /// The parameters with their defaults.
    parameters: BTreeMap<String, f64>,
}

#[derive(Serialize)]
struct PolicyEntry {
    name: &'static str,
    about: &'static str,
}

impl Catalogue {
    pub(crate) fn new() -> Catalogue {
        let machine = |name| {
            let machine = Machine::preset(name)?;
            Some(MachineEntry { name, cpus: machine.topology.cpus(), about: machine.name })
        };
        let workload = |name| {
            let Workload { about, parameters, .. } = Workload::preset(name)?;
            Some(WorkloadEntry { name, about, parameters })
        };
        let policy = |spec: &PolicySpec| PolicyEntry { name: spec.name, about: spec.about };
        Catalogue {
            machines: Machine::presets().filter_map(machine).collect(),
            workloads: Workload::presets().filter_map(workload).collect(),
            policies: policies::ALL.iter().map(policy).collect(),
        }
    }
}
