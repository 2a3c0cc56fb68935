//! Memory tiers: nodes without CPUs have slower memory. Unused memory is demoted to them, and used
//! memory is promoted again.
//!
//! [`percid_rules::scan::tiers`] contains the rules. A grain that is still armed has not been used
//! since it was armed, so the time of arming is enough for both decisions: whether a grain that is
//! still armed is cold, and whether one that is used now is hot. The times are stored beside the
//! region's pages ([`tracked`]) only if a program requests it
//! ([`Settings::tiers`](percid_rules::scan::Settings::tiers)). Otherwise no memory is allocated, no
//! clock read and no property of the machine.

mod slow;
pub(crate) mod tracked;

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, atomic::Ordering::Relaxed};
use std::time::Duration;

use percid_rules::scan::tiers::{HotThreshold, RateLimit};
use percid_rules::scan::{Settings, Tiers};

use crate::access::pages::Pages;
use crate::access::region_record::RegionRecord;
use crate::access_method::AccessMethod;
use crate::kernel::Kernel;
use crate::lock::lock;
use crate::sys::clock;
use crate::tiers::slow::SlowNodes;
use crate::tiers::tracked::Tracked;

/// Number of grains that one search for cold grains visits: about 100 us.
const AT_ONCE: usize = 1 << 16;

/// The placement on memory tiers, for all regions of a balancer.
#[derive(Debug)]
pub(crate) struct Placement {
    settings: Tiers,
    /// The interval over which the threshold is adapted.
    interval: Duration,
    /// Locked only briefly, and after all other locks.
    state: Mutex<TierState>,
}

#[derive(Debug)]
struct TierState {
    nodes: SlowNodes,
    threshold: HotThreshold,
    promotion: RateLimit,
    demotion: RateLimit,
}

/// Result of a search for cold grains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cold {
    /// Grains, and their target nodes.
    pub(crate) grains: Vec<(usize, u32)>,
    /// `true` if nothing more may be moved in this second.
    pub(crate) limited: bool,
}

impl Placement {
    /// Makes the placement; `None` if the settings do not request it.
    pub(crate) fn new(
        kernel: &impl Kernel,
        settings: &Settings,
        usable: &[u32],
    ) -> Option<Placement> {
        let tiers = settings.tiers?;
        let state = TierState {
            nodes: SlowNodes::read(kernel, usable),
            threshold: HotThreshold::new(&tiers, clock::since_boot()),
            promotion: RateLimit::new(tiers.rate),
            demotion: RateLimit::new(tiers.rate),
        };
        Some(Placement { settings: tiers, interval: settings.period_max, state: Mutex::new(state) })
    }

    /// Returns the slow nodes.
    pub(crate) fn slow_nodes(&self) -> Vec<u32> {
        lock(&self.state).nodes.slow.clone()
    }

    /// Makes the data of a region, which must not be published yet. Returns `false` if there is no
    /// memory.
    pub(crate) fn track(
        &self,
        pages: &mut Pages,
        access: AccessMethod,
        map: fn(usize) -> Option<NonNull<u8>>,
    ) -> bool {
        // If only writes are detected, memory that is only read would appear cold.
        let is_demoted = access != AccessMethod::Written;
        let Some(tracked) = Tracked::new(pages.layout.grains(), is_demoted, map) else {
            return false;
        };
        let state = lock(&self.state);
        tracked.set(&state.nodes.slow, state.threshold.get());
        pages.set_tiers(tracked);
        true
    }

    /// Prepares for a pass: reads the nodes again, adapts the threshold, and restarts the search
    /// for cold grains.
    pub(crate) fn begin_pass(
        &self,
        kernel: &impl Kernel,
        entries: &BTreeMap<usize, Arc<RegionRecord>>,
        usable: &[u32],
    ) {
        let mut state = lock(&self.state);
        state.nodes = SlowNodes::read(kernel, usable);
        let tracked = || entries.values().filter_map(|entry| entry.pages.as_ref()?.tiers());
        let hot = tracked().map(|tracked| tracked.hot.load(Relaxed)).sum();
        state.threshold.adapt(clock::since_boot(), hot, self.settings.rate, self.interval);
        for tracked in tracked() {
            tracked.set(&state.nodes.slow, state.threshold.get());
            tracked.next_cold.store(0, Relaxed);
        }
    }

    /// Removes the grains that would be promoted beyond the rate. They are judged again after they
    /// were armed again.
    pub(crate) fn keep_to_rate(&self, pages: &Pages, grains: &mut Vec<(usize, u32)>) {
        let Some(tracked) = pages.tiers() else { return };
        let mut state = lock(&self.state);
        let now = clock::since_boot();
        grains.retain(|&(grain, node)| {
            let is_promoted = pages.home(grain).is_some_and(|home| tracked.crosses(home, node));
            let bytes = pages.layout.grain(grain).len() as u64;
            !is_promoted || state.promotion.admit(now, bytes)
        });
    }

    /// Takes up to `most` cold grains of a region, no more than may be demoted now.
    pub(crate) fn take_cold(&self, pages: &Pages, most: usize) -> Cold {
        let mut cold = Cold { grains: Vec::new(), limited: false };
        let Some(tracked) = pages.tiers() else { return cold };
        let mut state = lock(&self.state);
        let now = clock::since_boot();
        let first = tracked.next_cold.load(Relaxed);
        let end = pages.layout.grains().min(first.saturating_add(AT_ONCE));
        for grain in first..end {
            tracked.next_cold.store(grain, Relaxed);
            if cold.grains.len() == most {
                return cold;
            }
            if !pages.is_armed(grain) || !self.settings.is_cold(tracked.age(grain, now)) {
                continue;
            }
            let target = pages.home(grain).and_then(|home| state.nodes.target(home));
            let Some(node) = target else { continue };
            if !state.demotion.admit(now, pages.layout.grain(grain).len() as u64) {
                cold.limited = true;
                return cold;
            }
            cold.grains.push((grain, node));
        }
        tracked.next_cold.store(end, Relaxed);
        cold
    }
}

/// Returns `true` if the search for cold grains of a region is not complete.
pub(crate) fn is_searched(entry: &RegionRecord) -> bool {
    let Some(pages) = &entry.pages else { return false };
    let tracked = pages.tiers().filter(|tracked| tracked.is_demoted && !entry.gone.load(Relaxed));
    tracked.is_some_and(|tracked| tracked.next_cold.load(Relaxed) < pages.layout.grains())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::pages::Layout;
    use crate::kernel::pretended::Pretended;
    use crate::sys::memory;
    use percid_rules::scan::Width;

    const PAGE: usize = 4096;

    /// Node 1 has no CPUs.
    fn machine() -> Pretended {
        let with_cpus = Some(vec![0]);
        Pretended { with_cpus, with_memory: vec![0, 1], ..Pretended::default() }
    }

    /// Makes pages of a region on node 0, whose slow neighbour is node 1.
    fn placed(settings: Tiers, grains: usize) -> (Placement, Pages) {
        let settings = Settings { tiers: Some(settings), ..Settings::default() };
        let placement = Placement::new(&machine(), &settings, &[0, 1]).expect("wanted");
        let layout = Layout {
            start: 1 << 20,
            bytes: grains * PAGE,
            shift: 12,
            nodes: 2,
            rights: 0,
            width: Width::Bits64,
            backoff: true,
            anonymous: true,
        };
        let mut pages = Pages::new(layout, &[0, 1], memory::map).expect("memory");
        assert!(placement.track(&mut pages, AccessMethod::Reported, memory::map));
        let tracked = pages.tiers().expect("tracked");
        tracked.next_cold.store(0, Relaxed);
        (placement, pages)
    }

    const AT_ONCE_COLD: Tiers =
        Tiers { cold_after: Duration::ZERO, hot_threshold: Duration::from_secs(1), rate: 1 << 40 };

    #[test]
    fn nothing_is_kept_for_who_does_not_ask() {
        assert!(Placement::new(&machine(), &Settings::default(), &[0]).is_none());
    }

    #[test]
    fn what_is_armed_on_a_fast_node_for_long_is_cold() {
        let (placement, pages) = placed(AT_ONCE_COLD, 8);
        // Grain 2 is on the slow node already, 4 and 5 on the fast one, 6 on a node of which
        // nothing is known.
        [(2, 1), (4, 0), (5, 0), (6, 7)]
            .iter()
            .for_each(|&(grain, home)| _ = pages.arm(grain, home));
        pages.disarm(5);
        let cold = placement.take_cold(&pages, 8);
        assert_eq!(cold, Cold { grains: vec![(4, 1)], limited: false });
        assert_eq!(placement.take_cold(&pages, 8).grains, [], "until the next pass");
    }

    #[test]
    fn what_was_armed_just_now_is_not_cold() {
        let minute = Tiers { cold_after: Duration::from_secs(60), ..AT_ONCE_COLD };
        let (placement, pages) = placed(minute, 8);
        pages.arm(4, 0);
        assert_eq!(placement.take_cold(&pages, 8).grains, []);
        let tracked = pages.tiers().expect("tracked");
        tracked.stamp_at(4, clock::since_boot().saturating_sub(Duration::from_secs(61)));
        tracked.next_cold.store(0, Relaxed);
        let was_long_ago = clock::since_boot() > Duration::from_secs(61);
        assert_eq!(placement.take_cold(&pages, 8).grains.len(), usize::from(was_long_ago));
    }

    #[test]
    fn a_search_goes_on_where_it_ended() {
        let (placement, pages) = placed(AT_ONCE_COLD, 100);
        (0..100).for_each(|grain| _ = pages.arm(grain, 0));
        let take = |most| placement.take_cold(&pages, most).grains.len();
        assert_eq!((take(30), take(60), take(60), take(60)), (30, 60, 10, 0));
    }

    #[test]
    fn no_more_is_demoted_than_may_be() {
        let few = Tiers { rate: 10 * PAGE as u64, ..AT_ONCE_COLD };
        let (placement, pages) = placed(few, 100);
        (0..100).for_each(|grain| _ = pages.arm(grain, 0));
        let cold = placement.take_cold(&pages, 64);
        assert_eq!((cold.grains.len(), cold.limited), (10, true));
        let cold = placement.take_cold(&pages, 64);
        // The search may find more if a second has passed.
        assert!(cold.grains.is_empty() || cold.grains[0].0 == 10);
    }

    #[test]
    fn no_more_is_promoted_than_may_be() {
        let few = Tiers { rate: 10 * PAGE as u64, ..AT_ONCE_COLD };
        let (placement, pages) = placed(few, 100);
        (0..100).for_each(|grain| pages.set_home(grain, u32::from(grain < 50)));
        let mut grains: Vec<(usize, u32)> = (0..100).map(|grain| (grain, 0)).collect();
        placement.keep_to_rate(&pages, &mut grains);
        let promoted = grains.iter().filter(|(grain, _)| *grain < 50).count();
        assert_eq!((promoted, grains.len()), (10, 60), "what is on fast nodes does not count");
    }

    #[test]
    fn a_pass_looks_at_the_nodes_again_adapts_the_threshold_and_begins_a_search() {
        let (placement, pages) = placed(AT_ONCE_COLD, 8);
        (0..8).for_each(|grain| _ = pages.arm(grain, 0));
        assert_eq!(
            (placement.slow_nodes(), placement.take_cold(&pages, 8).grains.len()),
            (vec![1], 8)
        );
        let entries = BTreeMap::from([(0, Arc::new(RegionRecord::from_pages(pages)))]);
        let entry = &entries[&0];
        let pages = entry.pages.as_ref().expect("pages");
        assert!(!is_searched(entry), "the search is over");
        placement.begin_pass(&machine(), &entries, &[0, 1]);
        assert!(is_searched(entry));
        assert_eq!(placement.take_cold(pages, 2).grains, [(0, 1), (1, 1)]);
        assert!(is_searched(entry));
        entry.gone.store(true, Relaxed);
        assert!(!is_searched(entry), "its memory is gone");
        // The slow node may not be used any more.
        placement.begin_pass(&machine(), &entries, &[0]);
        assert_eq!(
            (placement.slow_nodes(), placement.take_cold(pages, 8).grains),
            (vec![], vec![])
        );
        assert!(!pages.tiers().expect("tracked").crosses(0, 1));
        // More was hot than may be promoted, for longer than the interval.
        lock(&placement.state).threshold = HotThreshold::new(&AT_ONCE_COLD, Duration::ZERO);
        pages.tiers().expect("tracked").hot.store(u64::MAX / 2, Relaxed);
        let until_now = Placement { interval: Duration::ZERO, ..placement };
        until_now.begin_pass(&machine(), &entries, &[0, 1]);
        assert!(lock(&until_now.state).threshold.get() < AT_ONCE_COLD.hot_threshold);
    }

    #[test]
    fn memory_whose_reads_are_not_seen_is_not_demoted() {
        for (access, is_demoted) in [(AccessMethod::Written, false), (AccessMethod::Trapped, true)]
        {
            let (placement, mut pages) = placed(AT_ONCE_COLD, 8);
            assert!(placement.track(&mut pages, access, memory::map));
            assert_eq!(pages.tiers().expect("tracked").is_demoted, is_demoted);
            let entries = BTreeMap::from([(0, Arc::new(RegionRecord::from_pages(pages)))]);
            placement.begin_pass(&machine(), &entries, &[0, 1]);
            assert_eq!(is_searched(&entries[&0]), is_demoted);
        }
        let (placement, mut pages) = placed(AT_ONCE_COLD, 8);
        assert!(!placement.track(&mut pages, AccessMethod::Reported, |_| None), "no memory");
    }

    #[test]
    fn without_slow_nodes_nothing_is_cold() {
        let (placement, pages) = placed(AT_ONCE_COLD, 8);
        pages.arm(4, 0);
        lock(&placement.state).nodes = SlowNodes::default();
        assert_eq!(placement.take_cold(&pages, 8).grains, []);
    }
}
