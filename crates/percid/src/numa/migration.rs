//! Moving pages to their users, batch by batch.

use std::time::Instant;

use super::entry::Entry;
use super::pages::Pages;
use crate::sys::{memory, numa};

/// What became of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Batch {
    /// Pages that were moved.
    pub moved: u64,
    /// Pages that could not be moved; the report has them by `errno`.
    pub failed: u64,
    /// Whether more pages are to move.
    pub more: bool,
}

/// Moves up to `bytes` of a region's pages to where they were used last.
pub(super) fn move_some(entry: &Entry, bytes: u64) -> Batch {
    let Some(pages) = &entry.pages else { return Batch::default() };
    let began = Instant::now();
    let mut work = pages.go_on_with_work();
    if work.over {
        return Batch::default();
    }
    let most = (bytes >> pages.layout.shift).max(1) as usize;
    let grains = pages.take_wanted(most, &mut work.next_wanted);
    let wishes = wishes(pages, &grains);
    let outcomes = carry_out(&wishes);
    let done: Vec<(Wish, i32)> = wishes.into_iter().zip(outcomes).collect();
    for of_grain in done.chunk_by(|(one, _), (other, _)| one.grain == other.grain) {
        if of_grain.iter().all(|(wish, outcome)| *outcome == wish.node) {
            pages.moved(of_grain[0].0.grain, of_grain[0].0.node as u32);
        }
    }
    drop(work);
    let mut tally = entry.tally();
    let mut batch = Batch::default();
    for (wish, outcome) in done {
        if outcome == wish.node {
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
struct Wish {
    grain: usize,
    address: usize,
    node: i32,
}

/// The pages of some grains that are not where they are to be.
fn wishes(pages: &Pages, grains: &[(usize, u32)]) -> Vec<Wish> {
    let page = memory::page_size();
    let all = grains.iter().flat_map(|&(grain, node)| {
        let addresses = pages.layout.grain(grain).step_by(page);
        addresses.map(move |address| Wish { grain, address, node: node as i32 })
    });
    let all: Vec<Wish> = all.collect();
    let addresses: Vec<usize> = all.iter().map(|wish| wish.address).collect();
    let mut now = vec![numa::UNTOUCHED; all.len()];
    if all.is_empty() || numa::query(&addresses, &mut now).is_err() {
        // Whatever keeps the kernel from telling keeps it from moving too: that is counted there.
        return all;
    }
    let elsewhere = |(wish, now): (Wish, i32)| (now >= 0 && now != wish.node).then_some(wish);
    all.into_iter().zip(now).filter_map(elsewhere).collect()
}

/// The nodes of the pages afterwards, or negative `errno`s.
fn carry_out(wishes: &[Wish]) -> Vec<i32> {
    let addresses: Vec<usize> = wishes.iter().map(|wish| wish.address).collect();
    let nodes: Vec<i32> = wishes.iter().map(|wish| wish.node).collect();
    let mut outcomes = vec![numa::UNTOUCHED; wishes.len()];
    if wishes.is_empty() {
        return outcomes;
    }
    let refused = numa::move_to(&addresses, &nodes, &mut outcomes).err().unwrap_or(libc::EAGAIN);
    for outcome in &mut outcomes {
        if *outcome == numa::UNTOUCHED {
            *outcome = -refused;
        }
    }
    outcomes
}
