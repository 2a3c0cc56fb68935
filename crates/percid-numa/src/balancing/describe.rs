//! Report of a region.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid_rules::scan::{AccessCounts, SkipReason};

use crate::access::region_record::RegionRecord;
use crate::report::RegionReport;
use crate::sys::{memory, nodes};
use crate::tiers::tracked::OfRegion;

/// Number of pages that a report looks up at once.
const LOOK_UP: usize = 4096;

/// Describes a region, and looks up the nodes of its pages.
pub(crate) fn describe(entry: &RegionRecord) -> RegionReport {
    let tally = entry.tally().clone();
    let seen = entry.pages.as_ref().map_or(AccessCounts::default(), |pages| pages.seen());
    let mut uses = Vec::new();
    if let Some(pages) = &entry.pages {
        let counts = (0..)
            .zip(pages.recent_accesses_by_node())
            .map(|(node, count)| (node, count.load(Relaxed)));
        uses.extend(counts.filter(|(_, count)| *count > 0));
    }
    let tiers = entry.pages.as_ref().and_then(|pages| pages.tiers());
    let of_tiers =
        |count: fn(&OfRegion) -> &AtomicU64| tiers.map_or(0, |tiers| count(tiers).load(Relaxed));
    let (pages_by_node, absent) = residency(&entry.range);
    RegionReport {
        range: entry.range.clone(),
        access: entry.access,
        gone: entry.gone.load(Relaxed),
        pages_by_node,
        absent,
        local: seen.local,
        remote: seen.remote,
        private: seen.private,
        shared: seen.shared,
        recent_accesses_by_node: uses,
        active: entry.active.load(Relaxed),
        scanned: tally.scanned,
        skipped: SkipReason::ALL.map(|reason| (reason, tally.skipped[reason as usize])),
        moved: tally.moved,
        promoted: of_tiers(|tiers| &tiers.promoted),
        demoted: of_tiers(|tiers| &tiers.demoted),
        pending: entry.pending(),
        failed: tally.failed.into_iter().collect(),
        unattributed: entry.pages.as_ref().map_or(0, |pages| pages.unattributed.load(Relaxed)),
        disarmed_whole: entry.pages.as_ref().map_or(0, |pages| pages.disarmed_whole.load(Relaxed)),
        scan_time: tally.scan_time,
        move_time: tally.move_time,
    }
}

/// Returns the number of pages of a range on each node, and the number of those on none, as the
/// kernel reports them.
fn residency(range: &Range<usize>) -> (Vec<(u32, u64)>, u64) {
    let mut by_node: BTreeMap<u32, u64> = BTreeMap::new();
    let mut absent = 0;
    let page = memory::page_size();
    for start in range.clone().step_by(LOOK_UP * page) {
        let end = range.end.min(start + LOOK_UP * page);
        let part: Vec<usize> = (start..end).step_by(page).collect();
        let mut nodes = vec![nodes::UNTOUCHED; part.len()];
        let _ = nodes::query(&part, &mut nodes);
        for node in nodes {
            match u32::try_from(node) {
                Ok(node) => *by_node.entry(node).or_default() += 1,
                Err(_) => absent += 1,
            }
        }
    }
    (by_node.into_iter().collect(), absent)
}
