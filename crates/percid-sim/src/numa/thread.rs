//! A thread of the benchmark: where it runs, when it scans, what it trapped.

use std::time::Duration;

use percid_rules::scan::{AccessCounts, Settings, adapted_period};

use super::clock::Clock;
use super::pages::Node;
use super::workload::Parameters;
use crate::time::Ns;

/// The machine of the published figures has two sockets.
pub(super) const NODES: usize = 2;

/// Until this sequence a thread's own faults migrate pages without further ado.
const EARLY: i64 = 4;

pub(super) struct Thread {
    pub(super) id: u32,
    pub(super) node: Node,
    pub(super) run_time: Ns,
    pub(super) clock: Clock,
    /// Whether its policy lets pages migrate when they are used.
    pub(super) balancing: bool,
    pub(super) has_looked: bool,
    /// What it trapped since its period was adapted.
    faults: AccessCounts,
    /// The sequence in which its period was adapted last.
    sequence: i64,
    /// Pages that it trapped, by node, older ones counting half each sequence.
    by_node: [u64; NODES],
    preferred: Option<Node>,
}

/// A hint fault as its thread counts it, in pages.
pub(super) struct Fault {
    pub(super) pages: u64,
    pub(super) local: bool,
    pub(super) private: bool,
}

impl Thread {
    /// Thread `n` of a process whose first thread has ID `first`. Workers go to the nodes in turn.
    pub(super) fn new(n: u32, first: u32, parameters: &Parameters) -> Thread {
        Thread {
            id: first + n,
            node: (n % NODES as u32) as Node,
            run_time: 0,
            // New threads begin two ticks late.
            clock: Clock::new(2 * parameters.tick, parameters.first_period),
            balancing: !parameters.bound_preparation,
            has_looked: false,
            faults: AccessCounts::default(),
            sequence: 0,
            by_node: [0; NODES],
            preferred: None,
        }
    }

    /// Adapts the period, at the first fault of a sequence. Returns whether it doubled because
    /// nothing useful was trapped.
    pub(super) fn begin_sequence(
        &mut self,
        sequence: i64,
        settings: &Settings,
        resident: u64,
        adaptation: bool,
    ) -> bool {
        if self.sequence == sequence {
            return false;
        }
        self.sequence = sequence;
        let faults = std::mem::take(&mut self.faults);
        if adaptation {
            let period = Duration::from_nanos(self.clock.period);
            let period = adapted_period(period, &faults, settings, resident);
            self.clock.period = period.as_nanos() as Ns;
        }
        if self.has_trapped() {
            let rank = |node: &usize| (self.by_node[*node], *node == usize::from(self.node));
            self.preferred = (0..NODES).max_by_key(rank).map(|node| node as Node);
        }
        self.by_node.iter_mut().for_each(|pages| *pages /= 2);
        adaptation && faults.local + faults.shared == 0
    }

    pub(super) fn count(&mut self, fault: &Fault) {
        let faults = &mut self.faults;
        *if fault.local { &mut faults.local } else { &mut faults.remote } += fault.pages;
        *if fault.private { &mut faults.private } else { &mut faults.shared } += fault.pages;
    }

    /// It trapped pages that are on `node` from now on.
    pub(super) fn found(&mut self, pages: u64, node: Node) {
        self.by_node[usize::from(node)] += pages;
    }

    /// Whether a page of another node that this thread traps moves to it. `last` is who trapped it
    /// before, and where. Groups of threads that share memory are not modelled: here no two of them
    /// do.
    pub(super) fn attracts(&self, n: u32, last: Option<(u32, Node)>) -> bool {
        let early = self.preferred.is_none() || self.sequence <= EARLY;
        last.is_none_or(|(other, node)| (early && other == n) || node == self.node)
    }

    /// It goes to the other node. Returns whether it leaves the one it prefers, or has no
    /// preference yet.
    pub(super) fn change_node(&mut self) -> bool {
        let leaves = self.preferred.is_none_or(|node| node == self.node);
        self.node = (self.node + 1) % NODES as Node;
        leaves && self.has_trapped()
    }

    fn has_trapped(&self) -> bool {
        self.by_node != [0; NODES]
    }
}
