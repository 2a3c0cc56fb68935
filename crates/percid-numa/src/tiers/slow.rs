//! The slow nodes, and the nearest of them for each other node, as the kernel reports them.

use percid_rules::scan::tiers::{NodeTraits, nearest, slow_nodes};

use crate::kernel::Kernel;

/// The slow nodes that the process may use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SlowNodes {
    pub(super) slow: Vec<u32>,
    /// The target of demotion for each fast node with memory.
    pub(super) targets: Vec<(u32, u32)>,
}

impl SlowNodes {
    /// Reads the slow nodes from some small files. `usable` are the nodes with memory that the
    /// process may use.
    pub(super) fn read(kernel: &impl Kernel, usable: &[u32]) -> SlowNodes {
        let with_cpus = kernel.nodes_with_cpus();
        let tiers = kernel.tiers();
        let of_machine = kernel.nodes_with_memory().into_iter().map(|node| NodeTraits {
            node,
            // If the kernel does not report the CPUs, no node is slow.
            has_cpus: with_cpus.as_ref().is_none_or(|with| with.contains(&node)),
            has_memory: true,
            tier: tiers.iter().find(|(_, nodes)| nodes.contains(&node)).map(|(tier, _)| *tier),
        });
        let mut slow = slow_nodes(&of_machine.collect::<Vec<_>>());
        slow.retain(|node| usable.contains(node));
        let fast = usable.iter().filter(|node| !slow.contains(node));
        let target = |&from: &u32| {
            let distances = if slow.len() > 1 { kernel.distances(from) } else { Vec::new() };
            let distance = |to| distances.iter().find(|(node, _)| *node == to);
            let target = nearest(&slow, |to| distance(to).map_or(u32::MAX, |(_, far)| *far));
            target.map(|to| (from, to))
        };
        let targets = fast.filter_map(target).collect();
        SlowNodes { slow, targets }
    }

    /// Returns the node that pages of a node are demoted to.
    pub(super) fn target(&self, from: u32) -> Option<u32> {
        self.targets.iter().find(|(node, _)| *node == from).map(|(_, to)| *to)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kernel::Linux;
    use crate::kernel::pretended::Pretended;
    use crate::sys::nodes;

    /// Makes a machine with two sockets, slow memory behind each, and slow memory that is far from
    /// both.
    fn machine() -> Pretended {
        Pretended {
            with_cpus: Some(vec![0, 1]),
            with_memory: vec![0, 1, 2, 3, 5],
            distances: BTreeMap::from([
                (0, vec![(0, 10), (1, 20), (2, 24), (3, 17), (5, 40)]),
                (1, vec![(0, 20), (1, 10), (2, 17), (3, 24), (5, 40)]),
            ]),
            ..Pretended::default()
        }
    }

    #[test]
    fn pages_of_each_fast_node_go_to_its_nearest_slow_one() {
        let found = SlowNodes::read(&machine(), &[0, 1, 2, 3, 5]);
        assert_eq!(found, SlowNodes { slow: vec![2, 3, 5], targets: vec![(0, 3), (1, 2)] });
        assert_eq!([0, 1, 2].map(|node| found.target(node)), [Some(3), Some(2), None]);
        let forbidden = SlowNodes::read(&machine(), &[0, 1, 2, 5]);
        assert_eq!(forbidden.targets, [(0, 2), (1, 2)]);
        assert_eq!(SlowNodes::read(&machine(), &[1, 5]).targets, [(1, 5)]);
        assert_eq!(SlowNodes::read(&machine(), &[0, 1]), SlowNodes::default());
    }

    #[test]
    fn tiers_say_which_memory_without_cpus_is_fast() {
        let tiers = vec![(3, vec![2]), (4, vec![0, 1]), (22, vec![3, 5])];
        let found = SlowNodes::read(&Pretended { tiers, ..machine() }, &[0, 1, 2, 3, 5]);
        assert_eq!(found.slow, [3, 5]);
        assert_eq!(found.targets, [(0, 3), (1, 3), (2, 3)]);
    }

    #[test]
    fn where_the_kernel_does_not_say_which_nodes_have_cpus_none_is_slow() {
        let silent = Pretended { with_cpus: None, ..machine() };
        assert_eq!(SlowNodes::read(&silent, &[0, 1, 2]), SlowNodes::default());
    }

    #[test]
    fn the_running_kernel_has_no_slow_node_with_cpus() {
        let found = SlowNodes::read(&Linux, &nodes::usable_nodes());
        let with_cpus = nodes::with_cpus().unwrap_or_default();
        assert!(found.slow.iter().all(|node| !with_cpus.contains(node)), "{found:?}");
    }
}
