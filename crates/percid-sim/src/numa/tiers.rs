//! percid's memory tiers in the model. Pages that stay armed for long without a touch go to a node
//! without CPUs. Pages there that are touched soon after they were armed go to the node of the
//! thread.

use std::time::Duration;

use percid_rules::scan::tiers::{HotThreshold, RateLimit, nearest};
use percid_rules::scan::{Settings, Tiers};

use super::pages::Node;
use super::system::System;
use crate::time::Ns;

/// The tiers of a process.
#[derive(Debug)]
pub(super) struct Placement {
    settings: Tiers,
    interval: Duration,
    threshold: HotThreshold,
    promotion: RateLimit,
    demotion: RateLimit,
    /// The node that cold pages go to, for each node with CPUs.
    targets: Vec<Node>,
    /// Number of bytes that were hot so far.
    hot: u64,
}

impl Placement {
    /// Creates the tiers; returns `None` on a machine without slow nodes.
    pub(super) fn new(tiers: Tiers, settings: &Settings, system: &System) -> Option<Placement> {
        let slow: Vec<u32> = (system.nodes()..system.all_nodes()).map(|node| node as u32).collect();
        let target = |from: usize| {
            nearest(&slow, |to| system.way(from, to as usize)).map(|node| node as Node)
        };
        let targets: Option<Vec<Node>> = (0..system.nodes()).map(target).collect();
        Some(Placement {
            settings: tiers,
            interval: settings.period_max,
            threshold: HotThreshold::new(&tiers, Duration::ZERO),
            promotion: RateLimit::new(tiers.rate),
            demotion: RateLimit::new(tiers.rate),
            targets: targets.filter(|targets| !targets.is_empty())?,
            hot: 0,
        })
    }

    pub(super) fn is_slow(&self, node: Node) -> bool {
        usize::from(node) >= self.targets.len()
    }

    /// Adapts the hot threshold after a pass.
    pub(super) fn adapt(&mut self, now: Ns) {
        let now = Duration::from_nanos(now);
        self.threshold.adapt(now, self.hot, self.settings.rate, self.interval);
    }

    /// Returns `true` if bytes on a slow node that are touched now are promoted.
    pub(super) fn promotes(&mut self, armed_at: Ns, now: Ns, bytes: u64) -> bool {
        if Duration::from_nanos(now - armed_at) >= self.threshold.get() {
            return false;
        }
        self.hot += bytes;
        self.promotion.admit(Duration::from_nanos(now), bytes)
    }

    /// Returns the target node if armed bytes of a node are demoted; `None` if they stay.
    pub(super) fn demotes(
        &mut self,
        node: Node,
        armed_at: Ns,
        now: Ns,
        bytes: u64,
    ) -> Option<Node> {
        let target = *self.targets.get(usize::from(node))?;
        let is_cold = self.settings.is_cold(Duration::from_nanos(now - armed_at));
        (is_cold && self.demotion.admit(Duration::from_nanos(now), bytes)).then_some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    fn placement(memory_only: u32) -> Option<Placement> {
        let system =
            System::uniform("two and more", 2, 8, 1e9, 2.0).with_memory_only(memory_only, 4.0);
        Placement::new(Tiers::default(), &Settings::default(), &system)
    }

    #[test]
    fn a_machine_without_slow_nodes_has_no_tiers() {
        assert!(placement(0).is_none());
    }

    #[test]
    fn what_is_armed_for_long_goes_and_what_is_touched_soon_returns() {
        let mut placement = placement(1).expect("a slow node");
        assert!(!placement.is_slow(1) && placement.is_slow(2));
        assert_eq!(placement.demotes(0, 0, 119 * SECOND, 4096), None);
        assert_eq!(placement.demotes(0, 0, 120 * SECOND, 4096), Some(2));
        assert_eq!(placement.demotes(2, 0, 120 * SECOND, 4096), None, "it is there");
        assert!(placement.promotes(SECOND, SECOND + SECOND / 2, 4096));
        assert!(!placement.promotes(SECOND, 2 * SECOND, 4096));
    }

    #[test]
    fn no_more_moves_than_may() {
        let mut placement = placement(1).expect("a slow node");
        let mib = 1 << 20;
        let moved = (0..200).filter(|_| placement.promotes(0, 0, mib)).count();
        assert_eq!((moved, placement.hot), (128, 200 * mib));
    }
}
