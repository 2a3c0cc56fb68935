//! Moving pages to the nodes that use them, in batches.

use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use percid_rules::scan::Settings;

use crate::access::pages::{Pages, Work};
use crate::access::region_record::RegionRecord;
use crate::call_size::CallSize;
use crate::done::Batch;
use crate::kernel::Kernel;
use crate::sys::{memory, nodes};
use crate::tiers::Placement;
use crate::tiers::tracked::OfRegion;

/// The fewest bytes of a batch: below, most of the time is the fixed cost of a system call.
const MIN_BATCH_BYTES: u64 = 64 << 10;

/// The size of the first batch. Kernels before 6.3 interrupt the other CPUs for every page, about 2
/// us each: a thread on such a CPU may wait for 2 ms.
pub(crate) const FIRST_BATCH_SIZE: CallSize = CallSize::new(4 << 20);

/// Returns the number of bytes that a batch should move.
pub(crate) fn bytes(settings: &Settings, size: &CallSize) -> u64 {
    size.bytes(settings.batch_time).max(MIN_BATCH_BYTES).min(settings.batch)
}

/// Moves a batch of a region's pages to the nodes of their last accesses.
pub(crate) fn move_some(
    kernel: &impl Kernel,
    entry: &RegionRecord,
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
    move_grains(kernel, entry, pages, &grains, work, began, size)
}

/// Moves a batch of a region's cold pages to a slow node. Pages that cannot be moved are left alone
/// for as long as if they had just been armed. Also returns `true` if no more may be demoted in
/// this second.
pub(crate) fn demote_some(
    kernel: &impl Kernel,
    entry: &RegionRecord,
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
    let batch = move_grains(kernel, entry, pages, &cold.grains, work, began, size);
    let stayed = |&&(grain, node): &&(usize, u32)| pages.home(grain) != Some(node);
    if let Some(tracked) = pages.tiers() {
        cold.grains.iter().filter(stayed).for_each(|&(grain, _)| tracked.stamp(grain));
    }
    (batch, cold.limited)
}

/// Moves grains to nodes, and counts the outcomes. The lock on `work` shows that no other thread
/// does.
fn move_grains(
    kernel: &impl Kernel,
    entry: &RegionRecord,
    pages: &Pages,
    grains: &[(usize, u32)],
    work: MutexGuard<'_, Work>,
    began: Instant,
    size: &mut CallSize,
) -> Batch {
    if grains.is_empty() {
        return Batch::default();
    }
    let page_moves = page_moves(kernel, pages, grains);
    settle(pages, grains, &page_moves);
    let (outcomes, took) = carry_out(kernel, &page_moves);
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
            // The kernel reports no outcome for pages that it gave up on.
            tally.fail(if outcome < 0 { -outcome } else { libc::EAGAIN }, 1);
        }
    }
    tally.moved += batch.moved;
    tally.move_time += began.elapsed();
    batch
}

/// Records that a grain was moved. A move between tiers does not depend on the accessing threads.
fn note_moved(pages: &Pages, grain: usize, before: Option<u32>, node: u32) {
    let crosses = |tiers: &OfRegion| before.is_some_and(|before| tiers.crosses(before, node));
    match pages.tiers().is_some_and(crosses) {
        true => pages.set_home(grain, node),
        false => pages.moved(grain, node),
    }
}

/// Corrects the stored nodes of grains that have no page to move.
fn settle(pages: &Pages, grains: &[(usize, u32)], page_moves: &[PageMove]) {
    let moving: BTreeSet<usize> = page_moves.iter().map(|page_move| page_move.grain).collect();
    let there = grains.iter().filter(|(grain, _)| !moving.contains(grain));
    there.for_each(|&(grain, node)| pages.set_home(grain, node));
}

/// A pending move of one page.
#[derive(Debug, Clone, Copy)]
struct PageMove {
    grain: usize,
    address: usize,
    node: i32,
}

/// Returns the pages of some grains that are not on their wanted node, sorted by node.
fn page_moves(kernel: &impl Kernel, pages: &Pages, grains: &[(usize, u32)]) -> Vec<PageMove> {
    let page = memory::page_size();
    let all = grains.iter().flat_map(|&(grain, node)| {
        let addresses = pages.layout.grain(grain).step_by(page);
        addresses.map(move |address| PageMove { grain, address, node: node as i32 })
    });
    let mut all: Vec<PageMove> = all.collect();
    all.sort_by_key(|page_move| (page_move.node, page_move.grain));
    let addresses: Vec<usize> = all.iter().map(|page_move| page_move.address).collect();
    let mut now = vec![nodes::UNTOUCHED; all.len()];
    if all.is_empty() || kernel.query(&addresses, &mut now).is_err() {
        // The kernel refuses to move pages that it refuses to look up; that is counted there.
        return all;
    }
    let elsewhere = |(page_move, now): (PageMove, i32)| {
        (now >= 0 && now != page_move.node).then_some(page_move)
    };
    all.into_iter().zip(now).filter_map(elsewhere).collect()
}

/// Moves the pages. Returns their nodes afterwards, or negative `errno`s; and the duration of the
/// calls.
fn carry_out(kernel: &impl Kernel, page_moves: &[PageMove]) -> (Vec<i32>, Duration) {
    let began = Instant::now();
    let mut outcomes = vec![nodes::UNTOUCHED; page_moves.len()];
    if page_moves.is_empty() {
        return (outcomes, Duration::ZERO);
    }
    let refused = move_pages(kernel, page_moves, &mut outcomes);
    // The kernel ends a call at the first page whose node it refuses, and after pages that are
    // busy: then the pages for other nodes get separate calls.
    let same_node = |one: &PageMove, other: &PageMove| one.node == other.node;
    let mut rest = &mut outcomes[..];
    for of_node in page_moves.chunk_by(same_node) {
        let (outcomes, behind) = rest.split_at_mut(of_node.len());
        rest = behind;
        let is_first = of_node[0].node == page_moves[0].node;
        let is_untouched = outcomes.iter().all(|outcome| *outcome == nodes::UNTOUCHED);
        let refused =
            if is_first || !is_untouched { refused } else { move_pages(kernel, of_node, outcomes) };
        let untouched = outcomes.iter_mut().filter(|outcome| **outcome == nodes::UNTOUCHED);
        untouched.for_each(|outcome| *outcome = -refused.unwrap_or(libc::EAGAIN));
    }
    let took = began.elapsed();
    look_again(kernel, page_moves, &mut outcomes);
    (outcomes, took)
}

/// Moves pages by one system call. Most of its time can be its fixed part, in which all CPUs
/// release pages. Returns the kernel's `errno` if it refused.
fn move_pages(kernel: &impl Kernel, page_moves: &[PageMove], outcomes: &mut [i32]) -> Option<i32> {
    let addresses: Vec<usize> = page_moves.iter().map(|page_move| page_move.address).collect();
    let nodes: Vec<i32> = page_moves.iter().map(|page_move| page_move.node).collect();
    kernel.move_to(&addresses, &nodes, outcomes).err()
}

/// Looks up the present nodes of pages with a bad outcome. The kernel reports a part of a huge page
/// as busy while it moves with the rest.
fn look_again(kernel: &impl Kernel, page_moves: &[PageMove], outcomes: &mut [i32]) {
    let missed = |(page_move, outcome): (&PageMove, &i32)| *outcome != page_move.node;
    let places: Vec<usize> = (0..page_moves.len())
        .filter(|&place| missed((&page_moves[place], &outcomes[place])))
        .collect();
    let addresses: Vec<usize> = places.iter().map(|&place| page_moves[place].address).collect();
    let mut now = vec![nodes::UNTOUCHED; places.len()];
    if places.is_empty() || kernel.query(&addresses, &mut now).is_err() {
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
    use std::collections::BTreeMap;
    use std::ops::Range;
    use std::sync::{Arc, atomic::Ordering::Relaxed};

    use percid_rules::scan::migration_policy::PageAccess;
    use percid_rules::scan::{Tiers, Width};

    use super::*;
    use crate::access::pages::Layout;
    use crate::access_method::AccessMethod;
    use crate::kernel::pretended::Pretended;
    use crate::sys::clock;

    const START: usize = 1 << 30;
    const GRAINS: usize = 24;
    /// Number of pages of a grain.
    const PAGES: usize = 4;
    const NODES: u32 = 4;

    /// Returns a generator of numbers below a bound (Marsaglia's xorshift).
    fn random(seed: u64) -> impl FnMut(u64) -> u32 {
        let mut state = seed * 2 + 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below) as u32
        }
    }

    /// Makes a region at addresses where nothing is mapped: only the pretended kernel uses them.
    fn region() -> RegionRecord {
        let page = memory::page_size();
        let layout = Layout {
            start: START,
            bytes: GRAINS * PAGES * page,
            shift: (PAGES * page).trailing_zeros(),
            nodes: NODES as usize,
            rights: 0,
            width: Width::Bits64,
            backoff: true,
            anonymous: true,
        };
        let nodes: Vec<u32> = (0..NODES).collect();
        RegionRecord::from_pages(Pages::new(layout, &nodes, memory::map).expect("memory"))
    }

    fn pages_of(pages: &Pages, grain: usize) -> Vec<usize> {
        pages.layout.grain(grain).step_by(memory::page_size()).collect()
    }

    /// Makes a machine with pages on random nodes; some have no memory and some are busy.
    fn machine(next: &mut impl FnMut(u64) -> u32) -> Pretended {
        let mut machine = Pretended::default();
        let quiet = next(3) == 0;
        let scattered = next(2) == 0;
        for grain in 0..GRAINS {
            let home = next(u64::from(NODES));
            for place in 0..PAGES {
                let page = START + (grain * PAGES + place) * memory::page_size();
                let node = if scattered { next(u64::from(NODES)) } else { home };
                if next(8) > 0 {
                    machine.homes.get_mut().insert(page, node);
                }
                if !quiet && next(16) == 0 {
                    machine.busy.insert(page);
                }
            }
        }
        if next(3) == 0 {
            machine
                .refused
                .insert(next(u64::from(NODES)), [libc::EACCES, libc::ENODEV][next(2) as usize]);
        }
        machine
    }

    /// Returns the correct result of a batch, computed page by page.
    fn expected(
        machine: &Pretended,
        wanted: &BTreeMap<usize, u32>,
    ) -> (BTreeMap<usize, u32>, BTreeMap<i32, u64>) {
        let mut homes = machine.homes.borrow().clone();
        let mut failed = BTreeMap::new();
        for (page, home) in &mut homes {
            let Some(node) = wanted.get(page).filter(|node| *node != home) else { continue };
            let errno = match machine.refused.get(node) {
                Some(errno) => *errno,
                None if machine.busy.contains(page) => libc::EAGAIN,
                None => {
                    *home = *node;
                    continue;
                }
            };
            *failed.entry(errno).or_default() += 1;
        }
        (homes, failed)
    }

    #[test]
    fn every_page_that_can_moves_and_every_other_one_is_counted_with_its_reason() {
        let mut cases = [0; 3];
        for seed in 0..2000 {
            let mut next = random(seed);
            let (machine, entry) = (machine(&mut next), region());
            let pages = entry.pages.as_ref().expect("memory");
            let mut grains: Vec<(usize, u32)> = Vec::new();
            for grain in 0..GRAINS {
                let home = machine.homes.borrow().get(&pages_of(pages, grain)[0]).copied();
                home.into_iter().for_each(|home| pages.set_home(grain, home));
                if next(2) == 0 {
                    grains.push((grain, next(u64::from(NODES))));
                }
            }
            let wanted: BTreeMap<usize, u32> = grains
                .iter()
                .flat_map(|&(grain, node)| {
                    pages_of(pages, grain).into_iter().map(move |page| (page, node))
                })
                .collect();
            let before = machine.homes.borrow().clone();
            let known: Vec<Option<u32>> = (0..GRAINS).map(|grain| pages.home(grain)).collect();
            let (homes, failed) = expected(&machine, &wanted);

            let (work, began) = (pages.go_on_with_work(), Instant::now());
            let mut size = FIRST_BATCH_SIZE;
            let batch = move_grains(&machine, &entry, pages, &grains, work, began, &mut size);

            assert_eq!(*machine.homes.borrow(), homes, "seed {seed}");
            assert_eq!(entry.tally().failed, failed, "seed {seed}");
            let moved = homes.iter().filter(|(page, home)| before[*page] != **home).count() as u64;
            assert_eq!((batch.moved, batch.failed), (moved, failed.values().sum()), "seed {seed}");
            assert_eq!(entry.tally().moved, moved, "seed {seed}");
            // One call, and one more for each node that it did not come to.
            let targets: BTreeSet<u32> = grains.iter().map(|(_, node)| *node).collect();
            let calls = match (moved + batch.failed, failed.is_empty()) {
                (0, _) => 0..=0,
                (_, true) => 1..=1,
                (_, false) => 1..=targets.len(),
            };
            assert!(calls.contains(&machine.moves.get()), "seed {seed}: {}", machine.moves.get());
            let looks = wanted.len()..=wanted.len() * if failed.is_empty() { 1 } else { 2 };
            assert!(looks.contains(&machine.asked.get()), "seed {seed}: {}", machine.asked.get());
            for (grain, known) in (0..GRAINS).zip(known) {
                // The stored node of a grain changes only when all of its memory is on the target
                // node.
                let to = grains.iter().find(|(of, _)| *of == grain).map(|(_, node)| *node);
                let is_there = |node: &u32| {
                    pages_of(pages, grain)
                        .iter()
                        .all(|page| homes.get(page).is_none_or(|home| home == node))
                };
                let home = to.filter(is_there).or(known);
                assert_eq!(pages.home(grain), home, "seed {seed}, grain {grain}");
            }
            cases[0] += usize::from(failed.is_empty());
            cases[1] += usize::from(failed.contains_key(&libc::EAGAIN));
            cases[2] += usize::from(failed.len() > 1);
        }
        assert!(cases.iter().all(|count| *count > 100), "{cases:?}");
    }

    /// The kernel refuses all queries and moves, as in a sandbox that forbids `move_pages`.
    #[test]
    fn where_nothing_is_answered_every_page_fails() {
        let machine = Pretended {
            refused: (0..NODES).map(|node| (node, libc::EPERM)).collect(),
            mute: Some(libc::EPERM),
            ..machine(&mut random(0))
        };
        let entry = region();
        let pages = entry.pages.as_ref().expect("memory");
        let (work, began) = (pages.go_on_with_work(), Instant::now());
        let batch = move_grains(
            &machine,
            &entry,
            pages,
            &[(3, 1), (5, 2)],
            work,
            began,
            &mut FIRST_BATCH_SIZE.clone(),
        );
        assert_eq!((batch.moved, batch.failed), (0, 2 * PAGES as u64));
        assert_eq!(entry.tally().failed, BTreeMap::from([(libc::EPERM, 2 * PAGES as u64)]));
        assert_eq!((pages.home(3), pages.home(5)), (None, None));
    }

    #[test]
    fn a_batch_takes_what_is_wanted_and_not_more_than_its_size() {
        let machine = Pretended::default();
        let entry = region();
        let pages = entry.pages.as_ref().expect("memory");
        for grain in 0..GRAINS {
            pages.set_home(grain, 0);
            machine
                .homes
                .borrow_mut()
                .extend(pages_of(pages, grain).into_iter().map(|page| (page, 0)));
            pages.arm(grain, 0);
            pages.note_use(grain, PageAccess { thread: 7, node: 1 });
        }
        assert_eq!(entry.pending(), GRAINS as u64);
        let of_two = 2 * pages.layout.grain(0).len() as u64;
        let settings = Settings { batch: of_two, ..Settings::default() };
        let batch = move_some(&machine, &entry, &settings, None, &mut FIRST_BATCH_SIZE.clone());
        assert_eq!((batch.moved, entry.pending()), (2 * PAGES as u64, GRAINS as u64 - 2));
        assert_eq!(machine.asked.get(), 2 * PAGES, "no page is asked about but these, once");
        pages.go_on_with_work().over = true;
        let batch = move_some(&machine, &entry, &settings, None, &mut FIRST_BATCH_SIZE.clone());
        assert_eq!((batch.moved, entry.pending()), (0, GRAINS as u64 - 2), "the region is gone");
    }

    /// Makes a region on node 0, all of it armed, with node 1 as slow memory; two pages are busy.
    fn with_tiers(settings: Tiers) -> (Pretended, RegionRecord, Settings, Placement) {
        let settings =
            Settings { tiers: Some(settings), batch: 8 * 4 * 4096, ..Settings::default() };
        let mut machine = Pretended {
            with_cpus: Some(vec![0, 2]),
            with_memory: vec![0, 1, 2],
            ..Pretended::default()
        };
        let placement = Placement::new(&machine, &settings, &[0, 1, 2]).expect("asked for");
        let mut entry = region();
        let pages = entry.pages.as_mut().expect("memory");
        assert!(placement.track(pages, AccessMethod::Reported, memory::map));
        for grain in 0..GRAINS {
            pages.arm(grain, 0);
            let there = pages_of(pages, grain).into_iter().map(|page| (page, 0));
            machine.homes.get_mut().extend(there);
        }
        machine.busy.extend([pages_of(pages, 2)[1], pages_of(pages, 3)[0]]);
        let entries = BTreeMap::from([(START, Arc::new(entry))]);
        placement.begin_pass(&machine, &entries, &[0, 1, 2]);
        let entry = entries.into_values().next().and_then(Arc::into_inner).expect("one owner");
        (machine, entry, settings, placement)
    }

    const COLD_AT_ONCE: Tiers =
        Tiers { cold_after: Duration::ZERO, hot_threshold: Duration::from_secs(1), rate: 1 << 40 };

    #[test]
    fn cold_grains_are_demoted_batch_by_batch_and_counted_by_tier() {
        let (machine, entry, settings, placement) = with_tiers(COLD_AT_ONCE);
        let pages = entry.pages.as_ref().expect("memory");
        let tracked = pages.tiers().expect("tracked");
        let of_batch = (settings.batch >> pages.layout.shift) as usize;
        let demote =
            || demote_some(&machine, &entry, &settings, &placement, &mut FIRST_BATCH_SIZE.clone());
        let (batch, limited) = demote();
        let moved = (of_batch * PAGES - 2) as u64;
        assert_eq!((batch.moved, batch.failed, limited), (moved, 2, false));
        let homes =
            |grains: Range<usize>| grains.map(|grain| pages.home(grain)).collect::<Vec<_>>();
        let (there, here) = (Some(1), Some(0));
        assert_eq!(homes(0..of_batch)[..5], [there, there, here, here, there]);
        assert_eq!(homes(of_batch..GRAINS), vec![here; GRAINS - of_batch]);
        assert_eq!((tracked.demoted.load(Relaxed), tracked.promoted.load(Relaxed)), (moved, 0));
        let batches = std::iter::from_fn(|| Some(demote().0.moved).filter(|moved| *moved > 0));
        assert_eq!(batches.sum::<u64>(), ((GRAINS - of_batch) * PAGES) as u64);
        assert_eq!(entry.tally().moved, (GRAINS * PAGES - 2) as u64);
        pages.go_on_with_work().over = true;
        assert_eq!((demote().0.moved, demote().1), (0, false));
    }

    #[test]
    fn a_grain_that_cannot_be_demoted_is_left_alone_like_one_that_was_just_armed() {
        let minute = Tiers { cold_after: Duration::from_secs(60), ..COLD_AT_ONCE };
        let (machine, entry, settings, placement) = with_tiers(minute);
        let pages = entry.pages.as_ref().expect("memory");
        let tracked = pages.tiers().expect("tracked");
        let now = clock::since_boot();
        [2, 4].into_iter().for_each(|grain| tracked.stamp_at(grain, Duration::ZERO));
        if now < Duration::from_secs(61) {
            return;
        }
        pages.go_on_with_work().over = true;
        let gone =
            demote_some(&machine, &entry, &settings, &placement, &mut FIRST_BATCH_SIZE.clone());
        assert_eq!((gone.0.moved, gone.0.failed, gone.1), (0, 0, false), "the region is gone");
        pages.go_on_with_work().over = false;
        let batch =
            demote_some(&machine, &entry, &settings, &placement, &mut FIRST_BATCH_SIZE.clone()).0;
        assert_eq!((batch.moved, batch.failed), (2 * PAGES as u64 - 1, 1));
        let now = clock::since_boot();
        assert!(tracked.age(2, now) < tracked.age(4, now), "it was stamped again");
    }

    /// Grains on the slow node that were used from node 0: the rate admits two.
    #[test]
    fn hot_grains_are_promoted_up_to_the_rate_and_keep_their_history() {
        let grain_bytes = PAGES * memory::page_size();
        let slow = Tiers { rate: 2 * grain_bytes as u64, ..COLD_AT_ONCE };
        let (machine, entry, settings, placement) = with_tiers(slow);
        let pages = entry.pages.as_ref().expect("memory");
        for grain in 4..8 {
            pages.set_home(grain, 1);
            machine
                .homes
                .borrow_mut()
                .extend(pages_of(pages, grain).into_iter().map(|page| (page, 1)));
            pages.note_use(grain, PageAccess { thread: 7, node: 0 });
        }
        assert_eq!(entry.pending(), 4);
        let mut size = FIRST_BATCH_SIZE;
        let batch = move_some(&machine, &entry, &settings, Some(&placement), &mut size);
        let promoted = pages.tiers().expect("tracked").promoted.load(Relaxed);
        assert_eq!((batch.moved, promoted), (2 * PAGES as u64, 2 * PAGES as u64));
        assert!(
            size.bytes(Duration::MAX) != FIRST_BATCH_SIZE.bytes(Duration::MAX),
            "its time was learned"
        );
        assert_eq!(
            (entry.pending(), [4, 5, 6].map(|grain| pages.home(grain))),
            (0, [Some(0), Some(0), Some(1)])
        );
    }

    #[test]
    fn a_batch_has_the_bytes_of_its_time_between_the_least_and_the_most() {
        let settings = Settings::default();
        let took = |time| {
            let mut size = FIRST_BATCH_SIZE;
            (0..40).for_each(|_| size.learn(1 << 20, time));
            (0..40).for_each(|_| size.learn(2 << 20, 2 * time));
            bytes(&settings, &size)
        };
        assert_eq!(bytes(&settings, &FIRST_BATCH_SIZE), 4 << 20);
        assert_eq!(took(Duration::from_secs(9)), MIN_BATCH_BYTES);
        assert_eq!(took(Duration::from_nanos(9)), settings.batch);
        assert!((3 << 20..5 << 20).contains(&took(Duration::from_micros(2500))));
    }
}
