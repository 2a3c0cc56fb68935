//! Moving pages to their users, batch by batch.

use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use percid_rules::scan::Settings;

use crate::access::entry::Entry;
use crate::access::pages::{Pages, Work};
use crate::call_size::CallSize;
use crate::done::Batch;
use crate::sys::{memory, nodes};
use crate::tiers::Placement;
use crate::tiers::tracked::OfRegion;

/// The fewest bytes of a batch: below, most of the time is what every system call costs.
const LEAST: u64 = 64 << 10;

/// The size of the first batch. Kernels before 6.3 interrupt the other CPUs for every page, some 2 us
/// each: 2 ms, for as long a thread may wait that uses one of them.
pub(crate) const FIRST: CallSize = CallSize::new(4 << 20);

/// Returns how many bytes a batch is to move.
pub(crate) fn bytes(settings: &Settings, size: &CallSize) -> u64 {
    size.bytes(settings.batch_time).max(LEAST).min(settings.batch)
}

/// Moves a batch of a region's pages to where they were used last.
pub(crate) fn move_some(
    entry: &Entry,
    settings: &Settings,
    tiers: Option<&Placement>,
    size: &mut CallSize,
) -> Batch {
    let Some(pages) = &entry.pages else { return Batch::default() };
    let began = Instant::now();
    let mut work = pages.go_on_with_work();
    if work.over {
        return Batch::default();
    }
    let most = (bytes(settings, size) >> pages.layout.shift).max(1) as usize;
    let mut grains = pages.take_wanted(most, &mut work.next_wanted);
    if let Some(tiers) = tiers {
        tiers.keep_to_rate(pages, &mut grains);
    }
    move_grains(entry, pages, &grains, work, began, size)
}

/// Moves a batch of a region's cold pages to a slow node. What cannot be moved is left alone for as
/// long as if it had just been armed. Returns whether no more may be demoted in this second, too.
pub(crate) fn demote_some(
    entry: &Entry,
    settings: &Settings,
    tiers: &Placement,
    size: &mut CallSize,
) -> (Batch, bool) {
    let Some(pages) = &entry.pages else { return (Batch::default(), false) };
    let began = Instant::now();
    let work = pages.go_on_with_work();
    if work.over {
        return (Batch::default(), false);
    }
    let most = (bytes(settings, size) >> pages.layout.shift).max(1) as usize;
    let cold = tiers.take_cold(pages, most);
    let batch = move_grains(entry, pages, &cold.grains, work, began, size);
    let stayed = |&&(grain, node): &&(usize, u32)| pages.home(grain) != Some(node);
    if let Some(tracked) = pages.tiers() {
        cold.grains.iter().filter(stayed).for_each(|&(grain, _)| tracked.stamp(grain));
    }
    (batch, cold.limited)
}

/// Moves grains to nodes, and counts what became of it. The lock on `work` shows that nobody else
/// does.
fn move_grains(
    entry: &Entry,
    pages: &Pages,
    grains: &[(usize, u32)],
    work: MutexGuard<'_, Work>,
    began: Instant,
    size: &mut CallSize,
) -> Batch {
    if grains.is_empty() {
        return Batch::default();
    }
    let page_moves = page_moves(pages, grains);
    settle(pages, grains, &page_moves);
    let (outcomes, took) = carry_out(&page_moves);
    size.learn((page_moves.len() * memory::page_size()) as u64, took);
    let done: Vec<(PageMove, i32)> = page_moves.into_iter().zip(outcomes).collect();
    for of_grain in done.chunk_by(|(one, _), (other, _)| one.grain == other.grain) {
        let PageMove { grain, node, .. } = of_grain[0].0;
        let before = pages.home(grain);
        if of_grain.iter().all(|(page_move, outcome)| *outcome == page_move.node) {
            note_moved(pages, grain, before, node as u32);
        }
        if let (Some(tiers), Some(before)) = (pages.tiers(), before) {
            let moved = of_grain.iter().filter(|(page_move, outcome)| *outcome == page_move.node);
            tiers.count(before, node as u32, moved.count() as u64);
        }
    }
    drop(work);
    let mut tally = entry.tally();
    let mut batch = Batch::default();
    for (page_move, outcome) in done {
        if outcome == page_move.node {
            batch.moved += 1;
        } else {
            batch.failed += 1;
            // The kernel says nothing about pages that it gave up on.
            tally.fail(if outcome < 0 { -outcome } else { libc::EAGAIN }, 1);
        }
    }
    tally.moved += batch.moved;
    tally.move_time += began.elapsed();
    batch
}

/// Notes that a grain was moved. Between tiers that says nothing about who uses it.
fn note_moved(pages: &Pages, grain: usize, before: Option<u32>, node: u32) {
    let crosses = |tiers: &OfRegion| before.is_some_and(|before| tiers.crosses(before, node));
    match pages.tiers().is_some_and(crosses) {
        true => pages.set_home(grain, node),
        false => pages.moved(grain, node),
    }
}

/// Corrects where grains were thought to be of which no page has to move.
fn settle(pages: &Pages, grains: &[(usize, u32)], page_moves: &[PageMove]) {
    let moving: BTreeSet<usize> = page_moves.iter().map(|page_move| page_move.grain).collect();
    let there = grains.iter().filter(|(grain, _)| !moving.contains(grain));
    there.for_each(|&(grain, node)| pages.set_home(grain, node));
}

/// A page that is to move.
#[derive(Debug, Clone, Copy)]
struct PageMove {
    grain: usize,
    address: usize,
    node: i32,
}

/// Returns the pages of some grains that are not on their wanted node, by node.
fn page_moves(pages: &Pages, grains: &[(usize, u32)]) -> Vec<PageMove> {
    let page = memory::page_size();
    let all = grains.iter().flat_map(|&(grain, node)| {
        let addresses = pages.layout.grain(grain).step_by(page);
        addresses.map(move |address| PageMove { grain, address, node: node as i32 })
    });
    let mut all: Vec<PageMove> = all.collect();
    all.sort_by_key(|page_move| (page_move.node, page_move.grain));
    let addresses: Vec<usize> = all.iter().map(|page_move| page_move.address).collect();
    let mut now = vec![nodes::UNTOUCHED; all.len()];
    if all.is_empty() || nodes::query(&addresses, &mut now).is_err() {
        // What the kernel refuses to look up it refuses to move too; that is counted there.
        return all;
    }
    let elsewhere = |(page_move, now): (PageMove, i32)| {
        (now >= 0 && now != page_move.node).then_some(page_move)
    };
    all.into_iter().zip(now).filter_map(elsewhere).collect()
}

/// Returns the nodes of the pages afterwards, or negative `errno`s; and how long the kernel took.
fn carry_out(page_moves: &[PageMove]) -> (Vec<i32>, Duration) {
    let began = Instant::now();
    let mut outcomes = vec![nodes::UNTOUCHED; page_moves.len()];
    if page_moves.is_empty() {
        return (outcomes, Duration::ZERO);
    }
    let refused = move_pages(page_moves, &mut outcomes);
    // The kernel ends a call at the first page whose node it refuses, and behind pages that are
    // busy: what goes to other nodes has calls of its own then.
    let same_node = |one: &PageMove, other: &PageMove| one.node == other.node;
    let mut rest = &mut outcomes[..];
    for of_node in page_moves.chunk_by(same_node) {
        let (outcomes, behind) = rest.split_at_mut(of_node.len());
        rest = behind;
        let is_first = of_node[0].node == page_moves[0].node;
        let is_untouched = outcomes.iter().all(|outcome| *outcome == nodes::UNTOUCHED);
        let refused =
            if is_first || !is_untouched { refused } else { move_pages(of_node, outcomes) };
        let untouched = outcomes.iter_mut().filter(|outcome| **outcome == nodes::UNTOUCHED);
        untouched.for_each(|outcome| *outcome = -refused.unwrap_or(libc::EAGAIN));
    }
    let took = began.elapsed();
    look_again(page_moves, &mut outcomes);
    (outcomes, took)
}

/// Moves pages by one system call, most of whose time can be what it takes in any case: for all CPUs
/// to let go of pages. Returns why the kernel refused.
fn move_pages(page_moves: &[PageMove], outcomes: &mut [i32]) -> Option<i32> {
    let addresses: Vec<usize> = page_moves.iter().map(|page_move| page_move.address).collect();
    let nodes: Vec<i32> = page_moves.iter().map(|page_move| page_move.node).collect();
    nodes::move_to(&addresses, &nodes, outcomes).err()
}

/// The kernel calls a part of a huge page busy while it moves with the rest. So the outcome is
/// where such pages are now.
fn look_again(page_moves: &[PageMove], outcomes: &mut [i32]) {
    let missed = |(page_move, outcome): (&PageMove, &i32)| *outcome != page_move.node;
    let places: Vec<usize> = (0..page_moves.len())
        .filter(|&place| missed((&page_moves[place], &outcomes[place])))
        .collect();
    let addresses: Vec<usize> = places.iter().map(|&place| page_moves[place].address).collect();
    let mut now = vec![nodes::UNTOUCHED; places.len()];
    if places.is_empty() || nodes::query(&addresses, &mut now).is_err() {
        return;
    }
    for (place, now) in places.into_iter().zip(now) {
        if now == page_moves[place].node {
            outcomes[place] = now;
        }
    }
}
