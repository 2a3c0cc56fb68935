//! A thread of a process: where it runs, when it scans, what it trapped.

use std::time::Duration;

use percid_rules::scan::{AccessCounts, Settings, adapted_period};

use super::clock::Clock;
use super::pages::Node;
use super::parameters::Parameters;
use super::system::System;
use super::weights::Weights;
use crate::time::{Ns, SECOND};

/// Until this sequence a thread's own faults migrate pages without further ado.
const EARLY: i64 = 4;
/// A thread looks again where it should be after a second, or this part of its period if that is
/// less.
const PART_OF_PERIOD: Ns = 16;

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
    /// Whether it ever trapped anything.
    has_trapped: bool,
    /// The sequence in which its period was adapted last.
    sequence: i64,
    /// Pages that it trapped, by node, older ones counting half each sequence.
    by_node: Vec<u64>,
    /// So many nodes, the first ones, have CPUs.
    with_cpus: usize,
    preferred: Option<Node>,
    /// Not before then it looks again where it should be.
    next_placement: Ns,
}

/// A hint fault as its thread counts it, in pages.
pub(super) struct Fault {
    pub(super) pages: u64,
    pub(super) local: bool,
    pub(super) private: bool,
}

impl Thread {
    /// Thread `n` of a process whose first thread has ID `first`. Workers go to the nodes in turn.
    pub(super) fn new(
        n: u32,
        first: u32,
        system: &System,
        bound: bool,
        parameters: &Parameters,
    ) -> Thread {
        Thread {
            id: first + n,
            node: (n as usize % system.nodes()) as Node,
            run_time: 0,
            // New threads begin two ticks late.
            clock: Clock::new(2 * parameters.tick, parameters.first_period),
            balancing: !bound,
            has_looked: false,
            faults: AccessCounts::default(),
            has_trapped: false,
            sequence: 0,
            by_node: vec![0; system.all_nodes()],
            with_cpus: system.nodes(),
            preferred: None,
            next_placement: 0,
        }
    }

    /// Whether it looks at this fault where it should be.
    pub(super) fn looks_for_its_place(&self, now: Ns) -> bool {
        now >= self.next_placement
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
        if self.by_node.iter().any(|pages| *pages > 0) {
            let rank = |node: &usize| (self.by_node[*node], *node == usize::from(self.node));
            self.preferred = (0..self.with_cpus).max_by_key(rank).map(|node| node as Node);
        }
        self.by_node.iter_mut().for_each(|pages| *pages /= 2);
        adaptation && faults.local + faults.shared == 0
    }

    /// Where it should be, if it knows; then it looks again after a while.
    pub(super) fn home(&mut self, now: Ns) -> Option<Node> {
        let home = self.preferred?;
        self.next_placement = now + SECOND.min(self.clock.period / PART_OF_PERIOD);
        Some(home)
    }

    pub(super) fn count(&mut self, fault: &Fault) {
        let faults = &mut self.faults;
        *if fault.local { &mut faults.local } else { &mut faults.remote } += fault.pages;
        *if fault.private { &mut faults.private } else { &mut faults.shared } += fault.pages;
    }

    /// It trapped pages that are on `node` from now on.
    pub(super) fn found(&mut self, pages: u64, node: Node) {
        self.has_trapped = true;
        self.by_node[usize::from(node)] += pages;
    }

    /// Whether a page on the node `home` that this thread traps moves to its own. `last` is who
    /// trapped it before, and where.
    pub(super) fn attracts(
        &self,
        n: u32,
        home: Node,
        last: Option<(u32, Node)>,
        weights: &Weights,
    ) -> bool {
        let Some((other, node)) = last else { return true };
        let early = self.preferred.is_none() || self.sequence <= EARLY;
        if early && other == n {
            return true;
        }
        node == self.node && (other == n || weights.allow(home, self.node))
    }

    /// Whether it is on the node that it prefers.
    pub(super) fn is_at_home(&self) -> bool {
        self.preferred == Some(self.node)
    }

    /// It goes to another node. Returns whether it leaves the one it prefers, or has no preference
    /// yet.
    pub(super) fn change_node(&mut self, node: Node) -> bool {
        let unsettled = self.sequence == 0 || self.preferred.is_none();
        let leaves = unsettled || self.is_at_home();
        self.node = node;
        leaves && self.has_trapped
    }
}
