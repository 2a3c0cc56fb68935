//! The order by activity: an idea from the discussion of the published series, built nowhere yet.

use super::walk::{Memory, Reason, Walk};

/// How urgent it is to scan a region; the order of the pass.
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
    /// Nobody does.
    Idle,
}

/// A pass in which the regions are visited by rank, and by address where the ranks are equal. One idle
/// region is scanned at most. The sequence is over when nothing is left to scan.
pub(super) fn pass<M: Memory>(walk: &mut Walk<'_, M>) {
    let mut candidates = candidates(walk);
    candidates.sort_unstable();
    let offset = std::mem::take(&mut walk.process.offset);
    let (mut idle, mut left) = (0, 0);
    for (rank, index) in candidates {
        let idle_before = idle;
        idle += u32::from(rank == Rank::Idle);
        let range = walk.process.regions[index].range.clone();
        if idle_before > 0 || walk.process.offset != 0 {
            walk.trace(index, Reason::PidInactive);
            left += 1;
            continue;
        }
        let from = if rank == Rank::Begun { offset } else { range.start };
        let (end, complete) = walk.scan(index, from);
        if !complete {
            walk.process.offset = end;
            left += 1;
        }
    }
    if left == 0 {
        walk.process.begin_sequence();
    }
}

/// The regions that may be scanned, with their ranks. What is left out for other reasons is traced.
fn candidates<M: Memory>(walk: &mut Walk<'_, M>) -> Vec<(Rank, usize)> {
    let mut candidates = Vec::new();
    for index in 0..walk.process.regions.len() {
        match walk.not_a_candidate(index) {
            Some(reason) => walk.trace(index, reason),
            None => candidates.push((rank(walk, index), index)),
        }
    }
    candidates
}

fn rank<M: Memory>(walk: &Walk<'_, M>, index: usize) -> Rank {
    let users = walk.state(index).users();
    let own = users.contains(walk.rules.width, walk.scanner.thread) || walk.is_new(index);
    match users.len() {
        _ if inside(walk, index) => Rank::Begun,
        _ if own || (walk.rules.rescue_starving && walk.starves(index)) => Rank::Own,
        0 => Rank::Idle,
        1 => Rank::Used,
        _ => Rank::Shared,
    }
}

/// Whether the pass before ended inside the region: here the offset says nothing about other regions.
fn inside<M>(walk: &Walk<'_, M>, index: usize) -> bool {
    let range = &walk.process.regions[index].range;
    range.start < walk.process.offset && walk.process.offset <= range.end
}
