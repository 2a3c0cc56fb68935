//! The results of a comparison as a document: what `percid sim run --json` prints, and the page of
//! the laboratory shows.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::columns::{self, Column, Values};
use crate::comparison::{Comparison, Row};
use crate::machine::{Machine, Parameter};
use crate::workload::{Memory, Workload};

/// The results of a comparison, with all numbers that they depend on.
///
/// ```
/// use percid_sim::comparison::Comparison;
/// use percid_sim::machine::Machine;
/// use percid_sim::results::Results;
/// use percid_sim::run_control::RunControl;
/// use percid_sim::workload::Workload;
/// use percid_sim::policies;
///
/// let machine = Machine::preset("cascade-lake").expect("a preset");
/// let mut workload = Workload::preset("container").expect("a preset");
/// workload.set("duration_ms", 20.0).expect("a parameter");
/// let comparison = Comparison {
///     machine: &machine,
///     workload: &workload,
///     sweeps: &[],
///     policies: &[policies::find("per-cpu").expect("a policy")],
///     seeds: 1,
///     seed: 1,
///     spans: 0,
/// };
/// let rows = comparison.simulate(&RunControl::default())?;
/// let results = Results::new(&comparison, rows, false);
/// assert_eq!(results.rows.len(), 1);
/// assert!(results.title().starts_with("container on "));
/// # Ok::<(), percid_sim::comparison::Failure>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Results {
    /// The machine.
    pub machine: MachineFigures,
    /// The workload.
    pub workload: WorkloadFigures,
    /// The first seed.
    pub seed: u64,
    /// Number of runs of each policy and combination.
    pub seeds: u64,
    /// `true` if runs are missing.
    pub interrupted: bool,
    /// Rows with at least one finished run.
    pub rows: Vec<Row>,
    /// `true` if a process may have a CPU quota.
    #[serde(skip)]
    pub has_quota: bool,
    /// The swept parameters, in the requested order.
    #[serde(skip)]
    pub sweeps: Vec<(String, Vec<f64>)>,
}

/// The machine of [`Results`].
#[derive(Debug, Serialize)]
pub struct MachineFigures {
    /// Its name.
    pub name: String,
    /// Number of CPUs.
    pub cpus: u32,
    /// Number of cores.
    pub cores: u32,
    /// Number of last-level caches.
    pub l3s: u32,
    /// Number of NUMA nodes.
    pub nodes: u32,
    /// Number of sockets.
    pub sockets: u32,
    /// Costs and clocks that are not swept.
    pub numbers: Vec<Parameter>,
}

/// The workload of [`Results`].
#[derive(Debug, Serialize)]
pub struct WorkloadFigures {
    /// Its name.
    pub name: String,
    /// A description in a few words.
    pub about: String,
    /// The kinds of memory of all programs.
    pub memory: String,
    /// Parameters that are not swept.
    pub parameters: BTreeMap<String, f64>,
}

impl Results {
    /// Creates the document of `rows`, the rows of `comparison` that are known. `interrupted` is
    /// `true` if some are missing.
    pub fn new(comparison: &Comparison<'_>, rows: Vec<Row>, interrupted: bool) -> Results {
        let Comparison { machine, workload, sweeps, seed, seeds, .. } = *comparison;
        let is_swept = |name: &str| sweeps.iter().any(|(swept, _)| swept == name);
        let mut parameters = workload.parameters.clone();
        parameters.retain(|name, _| !is_swept(name));
        let mut machine = MachineFigures::from_machine(machine);
        machine.numbers.retain(|number| !is_swept(number.name));
        Results {
            machine,
            workload: WorkloadFigures {
                name: workload.name.clone(),
                about: workload.about.clone(),
                memory: memory_of(workload),
                parameters,
            },
            seed,
            seeds,
            interrupted,
            rows: rows.into_iter().filter(|row| row.runs > 0).collect(),
            has_quota: workload.has_quota(),
            sweeps: sweeps.to_vec(),
        }
    }

    /// Returns the rows as a table. The common columns come first.
    pub fn columns(&self) -> Vec<Column> {
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
    pub fn title(&self) -> String {
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

    /// Returns the topology in one line.
    pub fn shape(&self) -> String {
        let MachineFigures { cpus, cores, l3s, nodes, sockets, .. } = self;
        format!("{cpus} CPUs, {cores} cores, {l3s} L3 caches, {nodes} nodes, {sockets} sockets")
    }
}
