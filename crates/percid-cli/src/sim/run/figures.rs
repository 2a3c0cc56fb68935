//! Result of a comparison: the JSON document.

use std::collections::BTreeMap;

use percid_sim::columns::{self, Column, Values};
use percid_sim::comparison::Row;
use percid_sim::machine::{Machine, Parameter};
use percid_sim::workload::{Memory, Workload};
use serde::Serialize;

use super::plan::Plan;
use crate::sim::numbers::Number;

/// The document of `percid sim run --json`.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) machine: MachineFigures,
    pub(super) workload: WorkloadFigures,
    pub(super) seed: u64,
    pub(super) seeds: u64,
    pub(super) interrupted: bool,
    /// Rows with at least one finished run.
    pub(super) rows: Vec<Row>,
    /// `true` if a process may have a CPU quota.
    #[serde(skip)]
    pub(super) has_quota: bool,
    /// The swept parameters, in the requested order.
    #[serde(skip)]
    pub(super) sweeps: Vec<(String, Vec<f64>)>,
}

#[derive(Debug, Serialize)]
pub(super) struct MachineFigures {
    pub(super) name: String,
    pub(super) cpus: u32,
    cores: u32,
    l3s: u32,
    nodes: u32,
    sockets: u32,
    /// Costs and clocks that are not swept.
    numbers: Vec<Parameter>,
}

#[derive(Debug, Serialize)]
pub(super) struct WorkloadFigures {
    pub(super) name: String,
    pub(super) about: String,
    /// The kinds of memory of all programs.
    pub(super) memory: String,
    /// Parameters that are not swept.
    pub(super) parameters: BTreeMap<String, f64>,
}

impl Results {
    pub(super) fn new(plan: &Plan, rows: Vec<Row>, interrupted: bool) -> Results {
        let mut parameters = plan.workload.parameters.clone();
        let is_swept = |name: &str| plan.sweeps.iter().any(|(swept, _)| swept == name);
        parameters.retain(|name, _| !is_swept(name));
        let mut machine = MachineFigures::from_machine(&plan.machine);
        machine.numbers.retain(|number| !is_swept(number.name));
        Results {
            machine,
            workload: WorkloadFigures {
                name: plan.workload.name.clone(),
                about: plan.workload.about.clone(),
                memory: memory_of(&plan.workload),
                parameters,
            },
            seed: plan.seed,
            seeds: plan.seeds,
            interrupted,
            rows: rows.into_iter().filter(|row| row.runs > 0).collect(),
            has_quota: plan.workload.has_quota(),
            sweeps: plan.sweeps.clone(),
        }
    }

    /// Returns the rows as a table. The common columns come first.
    pub(super) fn columns(&self) -> Vec<Column> {
        let rows = self.rows.len();
        let text = |name: &str, value: &str| Column {
            name: name.to_owned(),
            values: Values::Text(vec![value.to_owned(); rows]),
        };
        let count = |name: &str, value| Column {
            name: name.to_owned(),
            values: Values::Count(vec![Some(value); rows]),
        };
        let head = vec![
            text("machine", &self.machine.name),
            text("workload", &self.workload.name),
            text("memory", &self.workload.memory),
            count("seed", self.seed),
            count("seeds", self.seeds),
        ];
        columns::columns(head, &self.rows)
    }

    /// Returns a line that describes the simulation.
    pub(super) fn title(&self) -> String {
        format!(
            "{} on {} ({} CPUs), memory {}, {} from {}",
            self.workload.name,
            self.machine.name,
            self.machine.cpus,
            self.workload.memory,
            if self.seeds == 1 { "1 run".to_owned() } else { format!("{} runs", self.seeds) },
            if self.seeds == 1 {
                format!("seed {}", self.seed)
            } else {
                format!("seed {} on", self.seed)
            },
        )
    }
}

fn memory_of(workload: &Workload) -> String {
    let names: Vec<&str> = workload.memories().into_iter().map(Memory::name).collect();
    names.join(" and ")
}

impl MachineFigures {
    fn from_machine(machine: &Machine) -> MachineFigures {
        let topology = &machine.topology;
        let numbers = machine.costs.all().into_iter().chain(machine.kernel.all());
        MachineFigures {
            name: machine.name.clone(),
            cpus: topology.cpus(),
            cores: topology.cores(),
            l3s: topology.l3s(),
            nodes: topology.nodes(),
            sockets: topology.sockets(),
            numbers: numbers.map(Parameter::from).collect(),
        }
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = Number<'_>> {
        self.numbers.iter().map(Number::from)
    }

    /// Returns the topology in one line.
    pub(super) fn shape(&self) -> String {
        let MachineFigures { cpus, cores, l3s, nodes, sockets, .. } = self;
        format!("{cpus} CPUs, {cores} cores, {l3s} L3 caches, {nodes} nodes, {sockets} sockets")
    }
}
