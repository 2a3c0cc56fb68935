//! The machine as the model sees it: nodes, CPUs, and how fast memory is.

use crate::machine::Machine;

/// Nodes of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// The name, for tables.
    pub name: String,
    /// CPUs of all nodes. Threads beyond them share.
    pub cpus: u32,
    /// The speed at which all threads together write memory that is on their nodes, in bytes a
    /// second.
    pub speed: f64,
    /// What a byte on the farthest node costs, if one on the own node costs 1.
    pub remote_cost: f64,
    /// What a byte on a node without CPUs costs.
    pub slow_cost: f64,
    /// How far each node with CPUs is from each other one: 0 is itself, 1 is as far as it gets.
    distances: Vec<Vec<f64>>,
    /// How many nodes without CPUs follow those with some.
    memory_only: usize,
    /// How far each node with CPUs is from each node at all, in any unit; empty if all are as far.
    ways: Vec<Vec<u32>>,
}

impl System {
    /// A machine whose nodes are all as far from each other.
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

    /// The same with so many nodes that have no CPUs, where a byte costs `slow_cost`.
    pub fn with_memory_only(self, memory_only: u32, slow_cost: f64) -> System {
        System { memory_only: memory_only as usize, slow_cost, ..self }
    }

    /// A machine of the simulator with these numbers for its memory, of which its file says
    /// nothing. How far nodes are from each other, its distances say; without them a node of the
    /// same socket is nearer than one of another socket, as the latencies say.
    pub fn of(machine: &Machine, speed: f64, remote_cost: f64) -> System {
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

    /// The number of nodes with CPUs.
    pub fn nodes(&self) -> usize {
        self.distances.len()
    }

    /// The number of all nodes; those without CPUs come last.
    pub fn all_nodes(&self) -> usize {
        self.nodes() + self.memory_only
    }

    /// How far a node is from one with CPUs, in any unit.
    pub(super) fn way(&self, from: usize, to: usize) -> u32 {
        self.ways.get(from).map_or(1, |row| row[to])
    }

    /// What a byte costs that a thread on one node writes on another one.
    pub fn cost(&self, from: usize, to: usize) -> f64 {
        match self.distances[from].get(to) {
            Some(distance) => 1.0 + (self.remote_cost - 1.0) * distance,
            None => self.slow_cost,
        }
    }
}

/// The distances between the nodes of these rows.
fn square(rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row[..rows.len()].to_vec()).collect()
}

/// From 0, the node itself, to 1, the farthest that there is.
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
        let system = System::of(&machine, 1e9, 2.0);
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
        let system = System::of(&machine, 1e9, 2.0);
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
