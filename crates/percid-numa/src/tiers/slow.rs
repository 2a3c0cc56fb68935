//! Which nodes are slow, and which of them is nearest to each other node, as the kernel says.

use percid_rules::scan::tiers::{NodeTraits, nearest, slow_nodes};

use crate::sys::nodes;

/// The slow nodes that the process may use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SlowNodes {
    pub(super) slow: Vec<u32>,
    /// By fast node with memory: the slow node that its pages go to.
    pub(super) targets: Vec<(u32, u32)>,
}

impl SlowNodes {
    /// Reads them: some small files. `usable` are the nodes with memory that the process may use.
    pub(super) fn read(usable: &[u32]) -> SlowNodes {
        let with_cpus = nodes::with_cpus();
        let tiers = nodes::tiers();
        let of_machine = nodes::nodes_with_memory().into_iter().map(|node| NodeTraits {
            node,
            // Where the kernel does not say, no node is slow.
            has_cpus: with_cpus.as_ref().is_none_or(|with| with.contains(&node)),
            has_memory: true,
            tier: tiers.iter().find(|(_, nodes)| nodes.contains(&node)).map(|(tier, _)| *tier),
        });
        let mut slow = slow_nodes(&of_machine.collect::<Vec<_>>());
        slow.retain(|node| usable.contains(node));
        let fast = usable.iter().filter(|node| !slow.contains(node));
        let target = |&from: &u32| {
            let distances = if slow.len() > 1 { nodes::distances(from) } else { Vec::new() };
            let distance = |to| distances.iter().find(|(node, _)| *node == to);
            let target = nearest(&slow, |to| distance(to).map_or(u32::MAX, |(_, far)| *far));
            target.map(|to| (from, to))
        };
        let targets = fast.filter_map(target).collect();
        SlowNodes { slow, targets }
    }

    /// Returns where pages of a node are demoted to.
    pub(super) fn target(&self, from: u32) -> Option<u32> {
        self.targets.iter().find(|(node, _)| *node == from).map(|(_, to)| *to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_nodes_have_no_cpus_and_every_other_node_has_one_to_demote_to() {
        let usable = nodes::usable_nodes();
        let found = SlowNodes::read(&usable);
        let with_cpus = nodes::with_cpus().unwrap_or_default();
        assert!(found.slow.iter().all(|node| !with_cpus.contains(node)), "{found:?}");
        assert!(found.slow.iter().all(|node| usable.contains(node)), "{found:?}");
        let fast = usable.len() - found.slow.len();
        assert_eq!(found.targets.len(), if found.slow.is_empty() { 0 } else { fast });
        assert!(found.targets.iter().all(|(_, to)| found.slow.contains(to)), "{found:?}");
    }

    #[test]
    fn what_a_process_may_not_use_is_no_target() {
        assert_eq!(SlowNodes::read(&[]), SlowNodes::default());
    }
}
