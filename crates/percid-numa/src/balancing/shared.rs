//! Shared state of a balancer, its background thread and its regions.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use percid_rules::scan::{Rules, Scan, Settings};

use crate::balancing::fork_check::ForkCheck;
use crate::balancing::state::BalancerState;
use crate::kernel::Linux;
use crate::sys::{clock, nodes};
use crate::tiers::Placement;

/// Shared state of a balancer, its background thread and its regions. If a thread of the parent was
/// changing it at the time of a `fork`, the child cannot use it, so the child leaves all of it
/// alone.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(super) rules: Rules,
    /// The nodes that have memory. The subset that the process may use can change at any time.
    pub(super) nodes: Vec<u32>,
    /// `None` if memory tiers are not used.
    pub(super) tiers: Option<Placement>,
    pub(super) fork_check: ForkCheck,
    pub(super) began: Instant,
    /// Run time of the process's threads at the creation of the balancer.
    pub(super) ran_before: Duration,
    /// Locked for the whole of a pass, and before `state` if both are locked.
    pub(super) scan: Mutex<Scan>,
    /// Locked only briefly, since threads of the program wait for it.
    pub(super) state: Mutex<BalancerState>,
}

impl Inner {
    pub(crate) fn new(settings: Settings, rules: Rules) -> Inner {
        Inner {
            settings,
            rules,
            tiers: Placement::new(&Linux, &settings, &nodes::usable_nodes()),
            nodes: nodes::nodes_with_memory(),
            fork_check: ForkCheck::new(),
            began: Instant::now(),
            ran_before: clock::process_run_time(),
            scan: Mutex::new(Scan::new()),
            state: Mutex::new(BalancerState::new(&settings)),
        }
    }

    pub(crate) fn has_nodes(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Returns `true` if this is a child of the process that made the balancer.
    pub(crate) fn is_forked(&self) -> bool {
        self.fork_check.is_child()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.has_nodes() && !self.is_forked()
    }

    /// Returns the run time of the process's threads since the balancer was made.
    pub(super) fn run_time(&self) -> Duration {
        clock::process_run_time().saturating_sub(self.ran_before)
    }
}
