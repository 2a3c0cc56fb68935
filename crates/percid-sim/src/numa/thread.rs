//! A thread of a process: its node, its scans, and its hint faults.

use std::time::Duration;

use percid_rules::scan::{AccessCounts, Settings, adapted_period};

use super::clock::Clock;
use super::pages::Node;
use super::parameters::Parameters;
use super::system::System;
use super::weights::Weights;
use crate::time::{Ns, SECOND};

/// The sequence up to which a thread's own faults migrate pages without a second check.
const EARLY: i64 = 4;
/// Part of its period after which a thread checks its placement again, if that is less than a
/// second.
const PART_OF_PERIOD: Ns = 16;

pub(super) struct Thread {
    pub(super) id: u32,
    pub(super) node: Node,
    pub(super) run_time: Ns,
    pub(super) clock: Clock,
    /// `true` if its policy allows pages to migrate when they are used.
    pub(super) balancing: bool,
    pub(super) has_looked: bool,
    /// Its hint faults since its period was adapted.
    faults: AccessCounts,
    /// `true` if it has ever trapped on a page.
    has_trapped: bool,
    /// The sequence in which its period was last adapted.
    sequence: i64,
    /// Pages that it trapped on, by node; each sequence halves the older ones.
    by_node: Vec<u64>,
    /// Number of nodes with CPUs; these come first.
    with_cpus: usize,
    preferred: Option<Node>,
    /// Earliest time of the next check of its placement.
    next_placement: Ns,
}

/// A hint fault as its thread counts it, in pages.
pub(super) struct Fault {
    pub(super) pages: u64,
    pub(super) local: bool,
    pub(super) private: bool,
}

impl Thread {
    /// Creates thread `n` of a process whose first thread has ID `first`. Workers start on the
    /// nodes in turn.
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

    /// Returns `true` if it checks its placement at this fault.
    pub(super) fn looks_for_its_place(&self, now: Ns) -> bool {
        now >= self.next_placement
    }

    /// Adapts the period, at the first fault of a sequence. Returns `true` if the period doubled
    /// because no useful fault was counted.
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

    /// Returns the preferred node, if there is one, and sets the time of the next check.
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

    /// Counts pages that it trapped on, which are now on `node`.
    pub(super) fn found(&mut self, pages: u64, node: Node) {
        self.has_trapped = true;
        self.by_node[usize::from(node)] += pages;
    }

    /// Returns `true` if a page on node `home` that this thread traps on moves to its node. `last`
    /// is the thread that trapped on it before, and that thread's node then.
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

    /// Returns `true` if it is on its preferred node.
    pub(super) fn is_at_home(&self) -> bool {
        self.preferred == Some(self.node)
    }

    /// Moves to another node. Returns `true` if it has trapped before, and leaves its preferred
    /// node or was not settled on one yet.
    pub(super) fn change_node(&mut self, node: Node) -> bool {
        let unsettled = self.sequence == 0 || self.preferred.is_none();
        let leaves = unsettled || self.is_at_home();
        self.node = node;
        leaves && self.has_trapped
    }
}
