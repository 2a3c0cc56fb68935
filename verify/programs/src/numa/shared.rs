//! Memory that the threads of all nodes use alike does not wander between them.
//!
//! A thread on each node uses all pages of one region, and each time that the region is armed a
//! random thread is the first at each page: the worst case for a filter that looks at the first
//! accesses. Without the backoff pages keep moving; with it, after settling, less than 1 % of them
//! may move in a scan. There is at most one scan a second of a region of this size, by the
//! published constants.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use percid_numa::{AccessMethod, Balancer, Region, Settings};

use super::area::{Area, HUGE, PAGE};
use super::environment::{alone, migrated, nodes, pages, quick};
use super::follow::register;
use crate::options::Options;
use crate::pinning;
use crate::random::{Random, seed};
use crate::verdict::Verdict;

const BYTES: usize = 4 << 20;
const ROUNDS: u64 = 60;
const SETTLING: u64 = 30;
/// Pages of a grain of a region whose use is seen by faults.
const GRAIN: usize = 16;
const MOST: f64 = 0.01;

pub(crate) fn run(options: &Options) -> Verdict {
    let nodes = nodes();
    if nodes.len() < 2 {
        return Ok("skipped: one node".to_owned());
    }
    alone()?;
    let seed = seed();
    // The first access counts for a whole grain.
    let grain = match options.access {
        _ if options.huge => HUGE / PAGE,
        AccessMethod::Trapped | AccessMethod::Written => GRAIN,
        AccessMethod::Reported => 1,
    };
    let without = moved(options, &nodes, (seed, grain), false)?;
    let with = moved(options, &nodes, (seed, grain), true)?;
    let figures = format!(
        "nodes={} access={} huge={} moved_per_scan_without_backoff={:.4} with={:.4} by_kernel={:.4} \
         PERCID_SEED={seed}",
        nodes.len(),
        options.access,
        options.huge,
        without.counted,
        with.counted,
        with.by_kernel,
    );
    // With more nodes the filter alone stops more: the same node has to be first twice in a row.
    let right = with.counted < MOST && with.by_kernel < MOST && without.counted > 2.0 * MOST;
    if right { Ok(figures) } else { Err(figures) }
}

/// The share of the region that moves in a scan after settling.
struct Moved {
    /// The share by the balancer's count.
    counted: f64,
    /// The share by the kernel's count, which includes all processes.
    by_kernel: f64,
}

fn moved(
    options: &Options,
    nodes: &[(u32, Vec<u32>)],
    (seed, grain): (u64, usize),
    backoff: bool,
) -> Result<Moved, String> {
    let bytes = if options.huge { 8 * HUGE } else { BYTES };
    let scan_delay = Duration::from_millis(1);
    let settings = Settings { backoff, scan_delay, scan_size: bytes as u64, ..quick() };
    let balancer =
        Balancer::builder().settings(settings).build().map_err(|error| error.to_string())?;
    let area = Area::on(&nodes[0].1, bytes, pages(options))?;
    let region = register(&balancer, &area, options.access)?;
    let (turn, stop, round) =
        (Barrier::new(nodes.len() + 1), AtomicBool::new(false), AtomicU64::new(0));
    let (mut counted, mut at_first) = (0, None);
    std::thread::scope(|scope| {
        for (place, (_, cpus)) in nodes.iter().enumerate() {
            let (turn, stop, round, area, region) = (&turn, &stop, &round, &area, &region);
            scope.spawn(move || {
                pinning::restrict(0, &cpus[..1]);
                loop {
                    turn.wait();
                    if stop.load(Relaxed) {
                        return;
                    }
                    // The same random numbers in every thread.
                    let mut random = Random::new(seed, round.load(Relaxed));
                    let mine = first_uses(&mut random, area.pages(), grain, nodes.len(), place);
                    use_those(area, region, &mine, true);
                    turn.wait();
                    use_those(area, region, &mine, false);
                    turn.wait();
                }
            });
        }
        for number in 0..ROUNDS {
            round.store(number, Relaxed);
            if number == SETTLING {
                at_first = migrated();
            }
            balancer.pass();
            (0..3).for_each(|_| _ = turn.wait());
            loop {
                let batch = balancer.move_batch();
                counted += if number >= SETTLING { batch.moved } else { 0 };
                if !batch.more {
                    break;
                }
            }
            std::thread::sleep(settings.scan_delay);
        }
        stop.store(true, Relaxed);
        turn.wait();
    });
    let by_kernel = migrated().zip(at_first).map_or(0, |(now, before)| now - before);
    let share = |pages| pages as f64 / area.pages() as f64 / (ROUNDS - SETTLING) as f64;
    Ok(Moved { counted: share(counted), by_kernel: share(by_kernel) })
}

/// Returns the pages that a thread must use before all others use any: in each grain one random
/// page is first used by one random thread.
fn first_uses(
    random: &mut Random,
    pages: usize,
    grain: usize,
    threads: usize,
    place: usize,
) -> Vec<bool> {
    let mut mine = vec![false; pages];
    for start in (0..pages).step_by(grain) {
        let (page, thread) = (start + random.below(grain), random.below(threads));
        mine[page] = thread == place;
    }
    mine
}

/// Uses the pages that are the thread's own this time, or the others.
fn use_those(area: &Area, region: &Region, mine: &[bool], which: bool) {
    for page in (0..area.pages()).filter(|&page| mine[page] == which) {
        region.touch(page * PAGE);
        area.word(page).fetch_add(1, Relaxed);
    }
}
