//! Weights of the nodes by use in a process; they decide on migrations of shared pages.

use super::pages::Node;

/// Factor of CPU use above which a node attracts shared pages regardless of memory.
const MUCH_MORE: u128 = 3;
/// Otherwise, ratio by which its CPU use per memory use must exceed the other node's: 4 to 3.
const MORE: (u128, u128) = (4, 3);

/// Faults of all threads of a process in pages; each sequence halves the older ones.
#[derive(Debug)]
pub(super) struct Weights {
    /// Faults by the node of the thread.
    by_cpu: Vec<u64>,
    /// Faults by the node of the page.
    by_memory: Vec<u64>,
    sequence: i64,
}

impl Weights {
    pub(super) fn new(nodes: usize) -> Weights {
        Weights { by_cpu: vec![0; nodes], by_memory: vec![0; nodes], sequence: 0 }
    }

    /// Counts pages on node `memory` that a thread on node `cpu` trapped on.
    pub(super) fn count(&mut self, sequence: i64, cpu: Node, memory: Node, pages: u64) {
        if self.sequence != sequence {
            self.sequence = sequence;
            let all = self.by_cpu.iter_mut().chain(&mut self.by_memory);
            all.for_each(|pages| *pages /= 2);
        }
        self.by_cpu[usize::from(cpu)] += pages;
        self.by_memory[usize::from(memory)] += pages;
    }

    /// Returns `true` if a page that several threads share may move from one node to another.
    pub(super) fn allow(&self, from: Node, to: Node) -> bool {
        let cpu = |node: Node| u128::from(self.by_cpu[usize::from(node)]);
        let memory = |node: Node| u128::from(self.by_memory[usize::from(node)]);
        cpu(to) > MUCH_MORE * cpu(from)
            || cpu(to) * memory(from) * MORE.1 > cpu(from) * memory(to) * MORE.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_where_more_work_has_less_memory() {
        let mut weights = Weights::new(2);
        weights.count(1, 0, 0, 100);
        weights.count(1, 1, 0, 100);
        assert!(weights.allow(0, 1), "all memory is on one of two busy nodes");
        weights.count(1, 1, 1, 100);
        weights.count(1, 0, 1, 100);
        assert!(!weights.allow(0, 1) && !weights.allow(1, 0), "all alike");
        weights.count(1, 1, 1, 1000);
        assert!(weights.allow(0, 1), "five times the work");
    }
}
