//! The machine of the NUMA model: nodes, CPUs, and the speed of memory.

use crate::machine::Machine;

/// The nodes of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The name, for tables.
    pub name: String,
    /// Number of CPUs of all nodes. If there are more threads, they share CPUs.
    pub cpus: u32,
    /// Speed at which all threads together write memory on their own nodes, in bytes per second.
    pub speed: f64,
    /// Cost of a byte on the farthest node, relative to one on the own node.
    pub remote_cost: f64,
    /// Cost of a byte on a node without CPUs, likewise.
    pub slow_cost: f64,
    /// Relative distances between nodes with CPUs: 0 for the node itself, 1 for the farthest.
    distances: Vec<Vec<f64>>,
    /// Number of nodes without CPUs; they follow the nodes with CPUs.
    memory_only: usize,
    /// Distances from each node with CPUs to all nodes, in any unit; empty if all are equal.
    ways: Vec<Vec<u32>>,
}

impl System {
    /// Creates a machine on which all nodes are equally far from each other.
    pub fn uniform(name: &str, nodes: usize, cpus: u32, speed: f64, remote_cost: f64) -> System {
        let row = |from: usize| (0..nodes).map(|to| f64::from(u8::from(from != to))).collect();
        let distances = (0..nodes).map(row).collect();
        System {
            name: name.to_owned(),
            cpus,
            speed,
            remote_cost,
            slow_cost: remote_cost,
            distances,
            memory_only: 0,
            ways: Vec::new(),
        }
    }

    /// Adds nodes without CPUs, on which a byte costs `slow_cost`.
    pub fn with_memory_only(self, memory_only: u32, slow_cost: f64) -> System {
        System { memory_only: memory_only as usize, slow_cost, ..self }
    }

    /// Creates the system of a machine of the simulator. Its file has no numbers for the memory, so
    /// the caller provides them. The distances between nodes are those of the file. Without them,
    /// nodes of the same socket are nearer than others, according to the latencies.
    pub fn from_machine(machine: &Machine, speed: f64, remote_cost: f64) -> System {
        let with_cpus = machine.topology.nodes() as usize;
        let rows = machine.topology.distances().map(|given| &given.nodes[..with_cpus]);
        let ways: Vec<Vec<u32>> = rows.map_or(Vec::new(), <[_]>::to_vec);
        let given = rows.map(|rows| relative(&square(rows)));
        let distances = given.unwrap_or_else(|| by_sockets(machine));
        let (name, cpus) = (machine.name.clone(), machine.topology.cpus());
        let slow_cost = remote_cost;
        let memory_only = machine.topology.memory_only() as usize;
        System { name, cpus, speed, remote_cost, slow_cost, distances, memory_only, ways }
    }

    /// Returns the number of nodes with CPUs.
    pub fn nodes(&self) -> usize {
        self.distances.len()
    }

    /// Returns the number of all nodes; those without CPUs come last.
    pub fn all_nodes(&self) -> usize {
        self.nodes() + self.memory_only
    }

    /// Returns the distance of a node from one with CPUs, in any unit.
    pub(super) fn way(&self, from: usize, to: usize) -> u32 {
        self.ways.get(from).map_or(1, |row| row[to])
    }

    /// Returns the cost of a byte that a thread on node `from` writes on node `to`.
    pub fn cost(&self, from: usize, to: usize) -> f64 {
        match self.distances[from].get(to) {
            Some(distance) => 1.0 + (self.remote_cost - 1.0) * distance,
            None => self.slow_cost,
        }
    }
}

/// Returns the distances between the nodes of these rows, without further nodes.
fn square(rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row[..rows.len()].to_vec()).collect()
}

/// Scales distances: 0 is the node itself, 1 the greatest distance of all.
fn relative(given: &[Vec<u32>]) -> Vec<Vec<f64>> {
    let beyond = |from: usize, to: usize| given[from][to].saturating_sub(given[from][from]);
    let nodes = given.len();
    let all = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let farthest = all.map(|(from, to)| beyond(from, to)).max().unwrap_or(0).max(1);
    let row = |from| (0..nodes).map(move |to| f64::from(beyond(from, to)) / f64::from(farthest));
    (0..nodes).map(|from| row(from).collect()).collect()
}

fn by_sockets(machine: &Machine) -> Vec<Vec<f64>> {
    let topology = &machine.topology;
    let nodes = topology.nodes() as usize;
    let mut sockets = vec![0; nodes];
    for cpu in 0..topology.cpus() {
        let place = topology.place(cpu);
        sockets[place.node as usize] = place.socket;
    }
    let near = machine.costs.same_socket_ns.value / machine.costs.other_socket_ns.value;
    let has_more_sockets = topology.sockets() > 1;
    let distance = |from: usize, to: usize| match from == to {
        true => 0.0,
        false if sockets[from] == sockets[to] && has_more_sockets => near.min(1.0),
        false => 1.0,
    };
    let row = |from: usize| (0..nodes).map(|to| distance(from, to)).collect();
    (0..nodes).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_socket_are_nearer_than_others() {
        let machine = Machine::preset("epyc-9654").expect("a preset");
        let system = System::from_machine(&machine, 1e9, 2.0);
        assert_eq!(system.nodes(), machine.topology.nodes() as usize);
        assert_eq!(system.cost(0, 0), 1.0);
        assert_eq!(system.cost(0, system.nodes() - 1), 2.0);
    }

    #[test]
    fn distances_that_are_given_count() {
        let given = [vec![10, 12, 32], vec![12, 10, 21], vec![32, 21, 10]];
        let [first, second, _] = &relative(&given)[..] else { unreachable!("three nodes") };
        assert_eq!(first[..], [0.0, 2.0 / 22.0, 1.0]);
        assert_eq!(second[..], [2.0 / 22.0, 0.0, 0.5]);
    }

    #[test]
    fn nodes_without_cpus_follow_and_cost_what_is_said() {
        let system = System::uniform("two and one", 2, 4, 1e9, 2.0).with_memory_only(1, 5.0);
        assert_eq!((system.nodes(), system.all_nodes()), (2, 3));
        assert_eq!([0, 1, 2].map(|to| system.cost(1, to)), [2.0, 1.0, 5.0]);
    }

    #[test]
    fn a_file_may_have_nodes_without_cpus() {
        let text = "base = \"cascade-lake\"\nname = \"slow\"\n[topology]\nmemory_only_nodes = 2\n[distances]\n\
                    nodes = [[10, 21, 17, 28], [21, 10, 28, 17], [17, 28, 10, 28], [28, 17, 28, 10]]\n\
                    origin = \"a test\"\n";
        let machine = Machine::parse(text).expect("a machine");
        let system = System::from_machine(&machine, 1e9, 2.0);
        assert_eq!((system.nodes(), system.all_nodes()), (2, 4));
        assert_eq!([2, 3].map(|to| system.way(0, to)), [17, 28]);
        assert_eq!((system.cost(0, 1), system.cost(0, 3)), (2.0, 2.0));
        assert_eq!(Machine::parse(&machine.to_toml()).as_ref(), Ok(&machine));
    }

    #[test]
    fn the_farthest_node_costs_what_is_said() {
        let system = System::uniform("three nodes", 3, 6, 1e9, 2.5);
        assert_eq!((system.nodes(), system.cost(0, 2), system.cost(1, 1)), (3, 2.5, 1.0));
    }
}
