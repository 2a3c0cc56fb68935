//! The contents of a machine's file, which is incomplete if it has a base.

use serde::{Deserialize, Serialize};

use super::check::{MAX_CPUS, fault_of_number};
use super::lists::{self, Lists};
use super::shape::{Numbering, Shape};
use super::{CostsGiven, KernelGiven, Machine};
use crate::distances::Distances;
use crate::file::Error;
use crate::topology::Topology;

/// A machine as its file describes it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    /// Name or file of the machine that provides the missing parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<String>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<TopologyGiven>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distances: Option<Distances>,
    #[serde(default, skip_serializing_if = "KernelGiven::is_empty")]
    kernel: KernelGiven,
    #[serde(default, skip_serializing_if = "CostsGiven::is_empty")]
    costs: CostsGiven,
}

/// The places of CPUs: a regular shape, or lists.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TopologyGiven {
    #[serde(skip_serializing_if = "Option::is_none")]
    sockets: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes_per_socket: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    l3s_per_socket: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cores_per_l3: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads_per_core: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numbering: Option<Numbering>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus_of_cores: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus_of_l3s: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus_of_nodes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus_of_sockets: Option<Vec<String>>,
    /// Number of nodes without CPUs, beside a shape or lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_only_nodes: Option<u32>,
}

impl Machine {
    /// Returns the machine as the text of a file, including all inherited parts.
    pub fn to_toml(&self) -> String {
        Given::from_machine(self).to_toml()
    }

    /// Returns the file of a machine with these CPU places. Everything else comes from a base,
    /// which is one of [`presets`](Machine::presets) or a file.
    pub fn places_to_toml(name: &str, topology: &Topology, base: &str) -> String {
        Given::places_of(name, topology, base).to_toml()
    }
}

impl Given {
    /// Returns the whole machine: the given parts, and the base's parts for the rest. `text` is the
    /// file.
    pub(super) fn over(self, base: Option<&Machine>, text: &str) -> Result<Machine, Error> {
        self.check_numbers(text)?;
        let missing = |section: &'static str| {
            move |field| Error::of_field(text, &[section, field], missing(base.is_some()))
        };
        let like = base.map(|base| base.name.as_str()).unwrap_or_default();
        Ok(Machine {
            topology: distant(topology(self.topology, base, text)?, self.distances, base, text)?,
            kernel: self
                .kernel
                .over(base.map(|base| &base.kernel), like)
                .map_err(missing("kernel"))?,
            costs: self.costs.over(base.map(|base| &base.costs), like).map_err(missing("costs"))?,
            name: self.name,
        })
    }

    fn check_numbers(&self, text: &str) -> Result<(), Error> {
        let costs = self.costs.all().into_iter().map(|number| ("costs", number));
        let clocks = self.kernel.all().into_iter().map(|number| ("kernel", number));
        for (section, (field, number)) in costs.chain(clocks) {
            if let Some(expected) = fault_of_number(field, number.value) {
                return Err(Error::of_field(text, &[section, field], expected));
            }
        }
        Ok(())
    }

    /// Returns a complete description of the machine, without a base.
    fn from_machine(machine: &Machine) -> Given {
        Given {
            base: None,
            name: machine.name.clone(),
            topology: Some(TopologyGiven::from_topology(&machine.topology)),
            distances: machine.topology.distances().cloned(),
            kernel: KernelGiven::from(&machine.kernel),
            costs: CostsGiven::from(&machine.costs),
        }
    }

    /// Returns a description of the topology, with a base that provides the kernel numbers and the
    /// costs.
    fn places_of(name: &str, topology: &Topology, base: &str) -> Given {
        Given {
            base: Some(base.to_owned()),
            name: name.to_owned(),
            topology: Some(TopologyGiven::from_topology(topology)),
            distances: topology.distances().cloned(),
            kernel: KernelGiven::default(),
            costs: CostsGiven::default(),
        }
    }

    /// Returns the description as the text of a file.
    fn to_toml(&self) -> String {
        toml::to_string(self).expect("names, numbers and texts, which TOML has")
    }
}

fn missing(has_base: bool) -> &'static str {
    if has_base {
        "expected here, as the base has none"
    } else {
        "expected here, or a `base` that has it"
    }
}

fn topology(
    given: Option<TopologyGiven>,
    base: Option<&Machine>,
    text: &str,
) -> Result<Topology, Error> {
    let given = match (given, base) {
        (None, Some(base)) => return Ok(base.topology.clone()),
        (given, _) => given.unwrap_or_default(),
    };
    let inherited = base.map(|base| base.topology.memory_only());
    let memory_only = given.memory_only_nodes.or(inherited).unwrap_or(0);
    if memory_only > MAX_MEMORY_ONLY {
        let expected = format!("expected at most {MAX_MEMORY_ONLY}");
        return Err(Error::of_field(text, &["topology", "memory_only_nodes"], expected));
    }
    Ok(with_cpus(&given, base, text)?.with_memory_only(memory_only))
}

/// Maximum number of nodes without CPUs: the maximum number of nodes of Linux.
const MAX_MEMORY_ONLY: u32 = 1024;

fn with_cpus(given: &TopologyGiven, base: Option<&Machine>, text: &str) -> Result<Topology, Error> {
    let lists = given.lists(text)?;
    let only_memory = given.says_nothing_of_cpus();
    if let (None, true, Some(base)) = (&lists, only_memory, base) {
        return Ok(base.topology.clone());
    }
    match lists {
        Some(lists) => lists::topology(&lists, MAX_CPUS).map_err(|(field, entry, expected)| {
            let entry = entry.map(|at| at.to_string());
            let path: Vec<&str> = ["topology", field].into_iter().chain(entry.as_deref()).collect();
            Error::of_field(text, &path, expected)
        }),
        None => {
            let shape =
                given.shape(base.and_then(|base| Shape::from_topology(&base.topology)), text)?;
            match shape.fault(MAX_CPUS) {
                Some((field, expected)) => {
                    Err(Error::of_field(text, &["topology", field], expected))
                }
                None => Ok(shape.topology()),
            }
        }
    }
}

/// Returns the topology with the given distances, or else with those of a base that has the same
/// number of nodes.
fn distant(
    topology: Topology,
    given: Option<Distances>,
    base: Option<&Machine>,
    text: &str,
) -> Result<Topology, Error> {
    let all_nodes = |topology: &Topology| topology.nodes() + topology.memory_only();
    let nodes = all_nodes(&topology);
    let inherited = base.filter(|base| all_nodes(&base.topology) == nodes);
    let distances = match (given, inherited.and_then(|base| base.topology.distances())) {
        (Some(given), _) => given,
        (None, Some(inherited)) => inherited.clone(),
        (None, None) => return Ok(topology),
    };
    if let Some((row, expected)) = distances.fault(nodes) {
        let row = row.map(|row| row.to_string());
        let path: Vec<&str> = ["distances", "nodes"].into_iter().chain(row.as_deref()).collect();
        return Err(Error::of_field(text, &path, expected));
    }
    topology.with_distances(distances).map_err(Error::of_file)
}

impl TopologyGiven {
    fn from_topology(topology: &Topology) -> TopologyGiven {
        let memory_only = topology.memory_only();
        let memory_only_nodes = (memory_only > 0).then_some(memory_only);
        if let Some(shape) = Shape::from_topology(topology) {
            return TopologyGiven {
                sockets: Some(shape.sockets),
                nodes_per_socket: Some(shape.nodes_per_socket),
                l3s_per_socket: Some(shape.l3s_per_socket),
                cores_per_l3: Some(shape.cores_per_l3),
                threads_per_core: Some(shape.threads_per_core),
                numbering: Some(shape.numbering),
                memory_only_nodes,
                ..TopologyGiven::default()
            };
        }
        let [cores, l3s, nodes, sockets] = lists::from_topology(topology).map(Some);
        TopologyGiven {
            cpus_of_cores: cores,
            cpus_of_l3s: l3s,
            cpus_of_nodes: nodes,
            cpus_of_sockets: sockets,
            memory_only_nodes,
            ..TopologyGiven::default()
        }
    }

    fn says_nothing_of_cpus(&self) -> bool {
        let counts = [
            self.sockets,
            self.nodes_per_socket,
            self.l3s_per_socket,
            self.cores_per_l3,
            self.threads_per_core,
        ];
        counts.iter().all(Option::is_none) && self.numbering.is_none()
    }

    /// Returns the lists if any are given. Then all four must be given, and no counts.
    fn lists(&self, text: &str) -> Result<Option<Lists>, Error> {
        let lists =
            [&self.cpus_of_cores, &self.cpus_of_l3s, &self.cpus_of_nodes, &self.cpus_of_sockets];
        if lists.iter().all(|list| list.is_none()) {
            return Ok(None);
        }
        let fault = |field, expected: &str| Error::of_field(text, &["topology", field], expected);
        let counts = [
            ("sockets", self.sockets),
            ("nodes_per_socket", self.nodes_per_socket),
            ("l3s_per_socket", self.l3s_per_socket),
            ("cores_per_l3", self.cores_per_l3),
            ("threads_per_core", self.threads_per_core),
            ("numbering", self.numbering.map(|_| 0)),
        ];
        if let Some((field, _)) = counts.iter().find(|(_, count)| count.is_some()) {
            return Err(fault(field, "expected either counts or lists of CPUs, found both"));
        }
        let mut all = Lists::default();
        for ((field, given), list) in lists::FIELDS.iter().zip(lists).zip(&mut all) {
            let expected = || fault(field, "expected here: lists of CPUs say all four");
            *list = given.clone().ok_or_else(expected)?;
        }
        Ok(Some(all))
    }

    /// Returns the regular shape; a regular base provides the missing counts.
    fn shape(&self, base: Option<Shape>, text: &str) -> Result<Shape, Error> {
        let missing = |field| {
            let expected = "expected here, or a regular `base` that has it";
            Error::of_field(text, &["topology", field], expected)
        };
        let count = |field: &'static str, given: Option<u32>, inherited: fn(&Shape) -> u32| {
            given.or(base.as_ref().map(inherited)).ok_or_else(|| missing(field))
        };
        let inherited = base.map(|base| base.numbering);
        Ok(Shape {
            sockets: count("sockets", self.sockets, |base| base.sockets)?,
            nodes_per_socket: count("nodes_per_socket", self.nodes_per_socket, |base| {
                base.nodes_per_socket
            })?,
            l3s_per_socket: count("l3s_per_socket", self.l3s_per_socket, |base| {
                base.l3s_per_socket
            })?,
            cores_per_l3: count("cores_per_l3", self.cores_per_l3, |base| base.cores_per_l3)?,
            threads_per_core: count("threads_per_core", self.threads_per_core, |base| {
                base.threads_per_core
            })?,
            numbering: self.numbering.or(inherited).ok_or_else(|| missing("numbering"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_the_same_when_its_file_is_read() {
        let mut machines: Vec<Machine> = Machine::presets().filter_map(Machine::preset).collect();
        let mut irregular = machines[0].clone();
        irregular.name = "\"quoted\"\n[costs]".to_owned();
        irregular.topology = Topology::new(irregular.topology.places()[..100].to_vec());
        irregular.costs.hot_ns.value = 226.600_000_1;
        machines.push(irregular);
        for machine in machines {
            let text = machine.to_toml();
            assert!(!text.contains("base = "), "{text}");
            assert_eq!(Machine::parse(&text).as_ref(), Ok(&machine), "{text}");
        }
    }

    #[test]
    fn a_file_of_places_has_all_else_from_its_base() {
        let base = Machine::preset("epyc-9654").expect("a preset");
        let places = Machine::preset("cascade-lake").expect("a preset").topology;
        let text = Machine::places_to_toml("mine", &places, "epyc-9654");
        assert!(text.lines().count() < 12, "{text}");
        let machine = Machine::parse(&text).expect("a machine");
        assert_eq!((&machine.topology, machine.name.as_str()), (&places, "mine"));
        assert_eq!(machine.costs, base.costs.assumed_like(&base.name));
    }
}
