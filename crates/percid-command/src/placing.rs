//! Positions of CPUs, from arbitrary numbers of their cores, caches, sockets and nodes.

use std::collections::HashMap;
use std::hash::Hash;

use percid_sim::topology::{Place, Topology};

/// A CPU, and the numbers of the parts that contain it. The numbers are only compared for equality.
/// A missing number stands for one part that all CPUs share: virtual machines often report no
/// sockets, caches or nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// The CPU's number.
    pub cpu: u32,
    /// The core, whose numbers may restart in each socket.
    pub core: i64,
    /// The last-level cache, whose numbers may restart in each socket.
    pub l3: Option<i64>,
    /// The socket.
    pub socket: Option<i64>,
    /// The NUMA node.
    pub node: Option<i64>,
}

/// Assigns numbers from 0 without gaps to cores, caches, sockets and nodes, in the order of their
/// first occurrence.
#[derive(Debug, Default)]
pub struct Placing {
    cores: Numbers<(Option<i64>, Option<i64>, i64)>,
    l3s: Numbers<(Option<i64>, Option<i64>)>,
    sockets: Numbers<Option<i64>>,
    nodes: Numbers<Option<i64>>,
}

impl Placing {
    /// Returns the position of this CPU.
    pub fn place(&mut self, cpu: &Described) -> Place {
        let Described { core, l3, socket, node, .. } = *cpu;
        Place {
            core: self.cores.number((socket, l3, core)),
            l3: self.l3s.number((socket, l3)),
            socket: self.sockets.number(socket),
            node: self.nodes.number(node),
        }
    }

    /// Returns a position on a separate core next to another CPU.
    pub fn alone(&mut self, beside: Place) -> Place {
        Place { core: self.cores.unnamed(), ..beside }
    }

    /// Returns the nodes in the order of their new numbers.
    pub fn nodes(&self) -> Vec<Option<i64>> {
        self.nodes.in_order()
    }
}

/// Returns the topology with the CPUs in the order of their numbers, renumbered without gaps.
pub fn without_gaps(cpus: &[Described]) -> (Topology, Placing) {
    let mut cpus = cpus.to_vec();
    cpus.sort_by_key(|cpu| cpu.cpu);
    let mut placing = Placing::default();
    let places = cpus.iter().map(|cpu| placing.place(cpu)).collect();
    (Topology::new(places), placing)
}

/// Numbers from 0 without gaps, in the order of the first occurrence.
#[derive(Debug)]
struct Numbers<T> {
    met: HashMap<T, u32>,
    next: u32,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Numbers { met: HashMap::new(), next: 0 }
    }
}

impl<T: Hash + Eq + Copy> Numbers<T> {
    fn number(&mut self, thing: T) -> u32 {
        let next = self.next;
        let number = *self.met.entry(thing).or_insert(next);
        self.next += u32::from(number == next);
        number
    }

    /// Returns the number of an unnamed part that does not occur again.
    fn unnamed(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn in_order(&self) -> Vec<T> {
        let mut things: Vec<(u32, T)> = self.met.iter().map(|(&thing, &at)| (at, thing)).collect();
        things.sort_by_key(|(at, _)| *at);
        things.into_iter().map(|(_, thing)| thing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_numbered_without_gaps_as_they_are_met() {
        let mut numbers = Numbers::default();
        assert_eq!([7, 3, 7, 9].map(|thing| numbers.number(thing)), [0, 1, 0, 2]);
        assert_eq!(numbers.in_order(), [7, 3, 9]);
    }

    #[test]
    fn cores_and_caches_may_be_numbered_anew_in_each_socket() {
        let cpu = |cpu, core, socket| Described {
            cpu,
            core,
            l3: Some(0),
            socket: Some(socket),
            node: None,
        };
        let (topology, _) =
            without_gaps(&[cpu(9, 0, 1), cpu(2, 0, 0), cpu(4, 1, 0), cpu(11, 0, 1)]);
        assert_eq!((topology.cpus(), topology.cores(), topology.l3s()), (4, 3, 2));
        assert_eq!((topology.sockets(), topology.nodes()), (2, 1));
        assert_eq!(topology.place(2).core, topology.place(3).core, "CPUs 9 and 11");
    }
}
