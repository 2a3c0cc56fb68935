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
    /// How far each node is from each other one: 0 is itself, 1 is as far as it gets.
    distances: Vec<Vec<f64>>,
}

impl System {
    /// A machine whose nodes are all as far from each other.
    pub fn uniform(name: &str, nodes: usize, cpus: u32, speed: f64, remote_cost: f64) -> System {
        let row = |from: usize| (0..nodes).map(|to| f64::from(u8::from(from != to))).collect();
        let distances = (0..nodes).map(row).collect();
        System { name: name.to_owned(), cpus, speed, remote_cost, distances }
    }

    /// A machine of the simulator with these numbers for its memory, of which its file says
    /// nothing. How far nodes are from each other, its distances say; without them a node of the
    /// same socket is nearer than one of another socket, as the latencies say.
    pub fn of(machine: &Machine, speed: f64, remote_cost: f64) -> System {
        let given = machine.topology.distances().map(|given| relative(&given.nodes));
        let distances = given.unwrap_or_else(|| by_sockets(machine));
        let (name, cpus) = (machine.name.clone(), machine.topology.cpus());
        System { name, cpus, speed, remote_cost, distances }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.distances.len()
    }

    /// What a byte costs that a thread on one node writes on another one.
    pub fn cost(&self, from: usize, to: usize) -> f64 {
        1.0 + (self.remote_cost - 1.0) * self.distances[from][to]
    }
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
    fn the_farthest_node_costs_what_is_said() {
        let system = System::uniform("three nodes", 3, 6, 1e9, 2.5);
        assert_eq!((system.nodes(), system.cost(0, 2), system.cost(1, 1)), (3, 2.5, 1.0));
    }
}
