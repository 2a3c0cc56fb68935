//! Moving pages to their users, batch by batch.

pub(crate) mod throughput;

use std::time::{Duration, Instant};

use percid_rules::scan::Settings;

use crate::access::entry::Entry;
use crate::access::pages::Pages;
use crate::done::Batch;
use crate::migrate::throughput::Throughput;
use crate::sys::{memory, nodes};

/// The fewest bytes of a batch: below, most of the time is what every system call costs.
const LEAST: u64 = 64 << 10;

/// Chooses the size of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Of the moving alone, during which other threads may wait; not of what the kernel does
    /// before.
    throughput: Throughput,
    /// The bytes of the smallest batch so far and its shortest time: what larger batches take
    /// beyond that, they take for moving.
    smallest: Option<(u64, Duration)>,
}

impl Size {
    /// Small at first: older kernels (6.1) interrupt the other CPUs for every page.
    pub(crate) const FIRST: Size = Size { throughput: Throughput::assumed(6.5e6), smallest: None };

    fn bytes(&self, settings: &Settings) -> u64 {
        self.throughput.fits(settings.batch_time).max(LEAST).min(settings.batch)
    }

    fn learn(&mut self, bytes: u64, took: Duration) {
        let (least, shortest) = self.smallest.unwrap_or((bytes, took));
        if bytes > least {
            self.throughput.learn(bytes - least, took.saturating_sub(shortest));
        } else if bytes > 0 {
            self.smallest = Some((bytes, if bytes < least { took } else { took.min(shortest) }));
            self.throughput.double();
        }
    }
}

/// Moves a batch of a region's pages to where they were used last.
pub(crate) fn move_some(entry: &Entry, settings: &Settings, size: &mut Size) -> Batch {
    let Some(pages) = &entry.pages else { return Batch::default() };
    let began = Instant::now();
    let mut work = pages.go_on_with_work();
    if work.over {
        return Batch::default();
    }
    let most = (size.bytes(settings) >> pages.layout.shift).max(1) as usize;
    let grains = pages.take_wanted(most, &mut work.next_wanted);
    let page_moves = page_moves(pages, &grains);
    let (outcomes, took) = carry_out(&page_moves);
    size.learn((page_moves.len() * memory::page_size()) as u64, took);
    let done: Vec<(PageMove, i32)> = page_moves.into_iter().zip(outcomes).collect();
    for of_grain in done.chunk_by(|(one, _), (other, _)| one.grain == other.grain) {
        if of_grain.iter().all(|(page_move, outcome)| *outcome == page_move.node) {
            pages.moved(of_grain[0].0.grain, of_grain[0].0.node as u32);
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
    let all: Vec<PageMove> = all.collect();
    let addresses: Vec<usize> = all.iter().map(|page_move| page_move.address).collect();
    let mut now = vec![nodes::UNTOUCHED; all.len()];
    if all.is_empty() || nodes::query(&addresses, &mut now).is_err() {
        // What the kernel refuses to look up it refuses to move too; that is counted there.
        return all;
    }
    let elsewhere = |(page_move, now): (PageMove, i32)| {
        (now >= 0 && now != page_move.node).then_some(page_move)
    };
    let mut page_moves: Vec<PageMove> = all.into_iter().zip(now).filter_map(elsewhere).collect();
    page_moves.sort_by_key(|page_move| (page_move.node, page_move.grain));
    page_moves
}

/// Returns the nodes of the pages afterwards, or negative `errno`s; and how long the kernel took.
fn carry_out(page_moves: &[PageMove]) -> (Vec<i32>, Duration) {
    let began = Instant::now();
    // One call for each node: the kernel ends a call at the first page whose node it refuses.
    let same_node = |one: &PageMove, other: &PageMove| one.node == other.node;
    let mut outcomes: Vec<i32> =
        page_moves.chunk_by(same_node).flat_map(move_to_one_node).collect();
    let took = began.elapsed();
    look_again(page_moves, &mut outcomes);
    (outcomes, took)
}

/// As [`carry_out`], for pages that go to one node.
fn move_to_one_node(page_moves: &[PageMove]) -> Vec<i32> {
    let addresses: Vec<usize> = page_moves.iter().map(|page_move| page_move.address).collect();
    let nodes: Vec<i32> = page_moves.iter().map(|page_move| page_move.node).collect();
    let mut outcomes = vec![nodes::UNTOUCHED; page_moves.len()];
    let refused = nodes::move_to(&addresses, &nodes, &mut outcomes).err().unwrap_or(libc::EAGAIN);
    for outcome in &mut outcomes {
        if *outcome == nodes::UNTOUCHED {
            *outcome = -refused;
        }
    }
    outcomes
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many pages a batch settles at, on a machine that takes these times for a call
    /// and for each page.
    fn settles_at(call: Duration, page: Duration) -> u64 {
        let settings = Settings::default();
        let mut size = Size::FIRST;
        for _ in 0..20 {
            let pages = size.bytes(&settings) / 4096;
            size.learn(pages * 4096, call + page * pages as u32);
        }
        size.bytes(&settings) / 4096
    }

    #[test]
    fn a_batch_takes_as_long_as_it_may_beyond_what_a_call_costs() {
        let (millisecond, microsecond) = (Duration::from_millis(1), Duration::from_micros(1));
        assert_eq!(settles_at(millisecond, microsecond), 512, "2 MiB");
        let slow = settles_at(80 * millisecond, 50 * microsecond);
        assert!((190..=270).contains(&slow), "{slow}: 10 ms are 200 pages");
        let very_slow = settles_at(80 * millisecond, 10 * millisecond);
        assert!((16..=32).contains(&very_slow), "{very_slow}: 64 KiB are 16 pages");
    }
}
