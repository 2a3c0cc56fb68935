//! A pass in the order by activity ([`Order::Activity`](super::Order::Activity)).

use alloc::vec::Vec;

use super::region::SkipReason;
use super::visit::{Effects, Pass, Scanned};

/// The urgency of scanning a region; the order of the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its scan has begun.
    Begun,
    /// The scanning thread uses it, or activity does not count yet.
    Own,
    /// Several threads use it.
    Shared,
    /// A thread uses it.
    Used,
    /// No thread uses it.
    Idle,
}

/// Visits the regions by rank, and by address if the ranks are equal. At most one idle region is
/// scanned. The sequence is over when nothing is left to scan.
pub(super) fn run<E: Effects>(pass: &mut Pass<'_, E>) {
    let mut candidates = candidates(pass);
    candidates.sort_unstable();
    let offset = core::mem::take(&mut pass.scan.offset);
    let (mut idle_before, mut is_over) = (false, true);
    for (rank, index) in candidates {
        if idle_before || pass.scan.offset != 0 {
            pass.note(index, SkipReason::PidInactive);
            is_over = false;
            continue;
        }
        idle_before = rank == Rank::Idle;
        let mut at =
            if rank == Rank::Begun { offset } else { pass.scan.regions[index].range.start };
        if pass.arm_from(index, &mut at) == Scanned::BudgetSpent {
            pass.scan.offset = at;
            is_over = false;
        }
    }
    if is_over {
        pass.scan.next_sequence();
    }
}

/// Returns the regions that may be scanned, with their ranks. Reports the reason for each other
/// region.
fn candidates<E: Effects>(pass: &mut Pass<'_, E>) -> Vec<(Rank, usize)> {
    let mut candidates = Vec::new();
    for index in 0..pass.scan.regions.len() {
        match pass.obstacle(index) {
            Some(reason) => pass.note(index, reason),
            None => candidates.push((rank(pass, index), index)),
        }
    }
    candidates
}

fn rank<E: Effects>(pass: &Pass<'_, E>, index: usize) -> Rank {
    let own = pass.is_used_by_scanner(index) || pass.is_blind(index) || pass.is_rescued(index);
    match pass.memory(index).map_or(0, |memory| memory.activity.len()) {
        _ if is_inside(pass, index) => Rank::Begun,
        _ if own => Rank::Own,
        0 => Rank::Idle,
        1 => Rank::Used,
        _ => Rank::Shared,
    }
}

/// Returns `true` if the previous pass ended inside the region. In this order the offset carries no
/// information about other regions.
fn is_inside<E>(pass: &Pass<'_, E>, index: usize) -> bool {
    let range = &pass.scan.regions[index].range;
    range.start < pass.scan.offset && pass.scan.offset <= range.end
}
