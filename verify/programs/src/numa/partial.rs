//! Regions that the scanning thread does not use: with the published base rules they are never
//! scanned, or never to their end; with the selective ones they are.
//!
//! *Inactive*: a region that comes late, and that another thread uses than the one that scans.
//! *Partial*: one whose scan was begun by its user, and is continued by the other thread.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use percid_numa::{Balancer, Region, Rules, Settings};

use super::area::{Area, PAGE, Pages};
use super::environment::{alone, nodes};
use super::follow::register;
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

const BYTES: usize = 8 << 20;
/// A pass arms a quarter of the region.
const SCAN: u64 = 2 << 20;
const PASSES: usize = 60;

pub(crate) fn run(options: &Options) -> Verdict {
    let nodes = nodes();
    if nodes.len() < 2 {
        return Ok("skipped: one node".to_owned());
    }
    alone()?;
    let mut figures = format!("nodes={} access={}", nodes.len(), options.access);
    let mut right = true;
    for (name, rules, works) in
        [("base", Rules::BASE, false), ("selective", Rules::SELECTIVE, true)]
    {
        let share = inactive(options, &nodes, rules)?;
        figures += &format!(" inactive_share_{name}={share:.3}");
        right &= (share >= 0.95) == works;
    }
    let unforced = Rules { scan_one_inactive: false, ..Rules::SELECTIVE };
    for (name, rules, works) in [("base", Rules::BASE, false), ("selective", unforced, true)] {
        let scanned = partial(options, &nodes, rules)?;
        figures += &format!(" partial_scanned_{name}={scanned:.3}");
        right &= (scanned >= 0.99) == works;
    }
    if right { Ok(figures) } else { Err(figures) }
}

fn settings(delay: Duration) -> Settings {
    Settings { scan_delay: delay, scan_size: SCAN, ..Settings::default() }
}

/// Uses a region on one CPU while `body` runs on another.
fn used<T>(cpu: u32, area: &Area, region: &Region, body: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pinning::restrict(0, &[cpu]);
            while !stop.load(Relaxed) {
                use_all(area, region);
            }
        });
        let result = body();
        stop.store(true, Relaxed);
        result
    })
}

fn use_all(area: &Area, region: &Region) {
    for page in 0..area.pages() {
        region.touch(page * PAGE);
        area.word(page).fetch_add(1, Relaxed);
    }
}

/// Returns the share of a late region on its user's node after many passes by another thread.
fn inactive(options: &Options, nodes: &[(u32, Vec<u32>)], rules: Rules) -> Result<f64, String> {
    let delay = Duration::from_millis(1);
    let balancer = Balancer::builder()
        .settings(settings(delay))
        .rules(rules)
        .build()
        .map_err(|error| error.to_string())?;
    let early = Area::on(&nodes[0].1, PAGE, Pages::Small)?;
    let _early = register(&balancer, &early, options.access)?;
    // Activity counts from the second sequence on.
    while balancer.report().sequence < 3 {
        balancer.pass();
        std::thread::sleep(delay);
    }
    let (user, cpus) = &nodes[1];
    let area = Area::on(&nodes[0].1, BYTES, Pages::Small)?;
    let region = register(&balancer, &area, options.access)?;
    let share = || {
        let report = balancer.report();
        let of_area = report.regions.iter().find(|found| found.range == area.range());
        of_area.map_or(0.0, |found| found.share_on(*user))
    };
    Ok(used(cpus[0], &area, &region, || {
        for _ in 0..PASSES {
            balancer.pass();
            std::thread::sleep(Duration::from_millis(40));
            while balancer.move_batch().more {}
            if share() >= 0.95 {
                break;
            }
        }
        share()
    }))
}

/// Returns how much of the region is scanned in the sequence in which its user scanned a quarter of
/// it and then left the rest to another thread.
fn partial(options: &Options, nodes: &[(u32, Vec<u32>)], rules: Rules) -> Result<f64, String> {
    // Long windows: a thread that was seen in the first sequences still counts as a user.
    let long = Duration::from_secs(1);
    let balancer = Balancer::builder()
        .settings(settings(long))
        .rules(rules)
        .build()
        .map_err(|error| error.to_string())?;
    let area = Area::on(&nodes[0].1, BYTES, Pages::Small)?;
    let region = register(&balancer, &area, options.access)?;
    let scanned = || balancer.report().regions.first().map_or(0, |found| found.scanned);
    // Returns the bytes scanned before the scan that the user begins and does not complete.
    let begin = || {
        pinning::restrict(0, &nodes[1].1[..1]);
        loop {
            let (sequence, before) = (balancer.report().sequence, scanned());
            balancer.pass();
            if sequence >= 2 && scanned() > before {
                return before;
            }
            use_all(&area, &region);
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let before = std::thread::scope(|scope| scope.spawn(begin).join()).expect("no panic");
    for _ in 0..PASSES {
        balancer.pass();
        // A scanning thread counts as a user for a while after it has touched the region. This one
        // never touches it.
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((scanned() - before) as f64 / area.pages() as f64)
}
