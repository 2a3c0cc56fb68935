//! Memory on the wrong node follows the thread that uses it.
//!
//! On each node a thread uses a region of its own whose pages are on the next node. In bounded time
//! 95 % of each region's pages must be on the node of its thread.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid_numa::{AccessMethod, Balancer, Region};

use super::area::{Area, HUGE, PAGE};
use super::environment::{alone, blind, nodes, pages, quick};
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

/// Small, because Linux 6.1 interrupts the other CPUs for every page that it moves, which takes
/// emulated ones 10 ms.
const BYTES: usize = 2 << 20;
const ENOUGH: f64 = 0.95;

pub(crate) fn run(options: &Options) -> Verdict {
    let nodes = nodes();
    if nodes.len() < 2 {
        return Ok("skipped: one node".to_owned());
    }
    if let Some(skipped) = blind(options.access) {
        return Ok(skipped);
    }
    alone()?;
    let balancer =
        Balancer::builder().settings(quick()).build().map_err(|error| error.to_string())?;
    let bytes = if options.huge { 2 * HUGE } else { BYTES };
    let mut areas = Vec::new();
    for place in 0..nodes.len() {
        let elsewhere = &nodes[(place + 1) % nodes.len()].1;
        areas.push(Area::on(elsewhere, bytes, pages(options))?);
    }
    let regions = areas.iter().map(|area| register(&balancer, area, options.access));
    let regions: Vec<Region> = regions.collect::<Result<_, String>>()?;
    let shares = || -> Vec<f64> {
        let report = balancer.report();
        let share = |((node, _), area): (&(u32, Vec<u32>), &Area)| {
            let of_area = report.regions.iter().find(|region| region.range == area.range());
            of_area.map_or(0.0, |region| region.share_on(*node))
        };
        nodes.iter().zip(&areas).map(share).collect()
    };
    let before = shares();
    let (stop, began) = (AtomicBool::new(false), Instant::now());
    let limit = Duration::from_secs_f64(options.seconds);
    let (took, after) = std::thread::scope(|scope| {
        for (((_, cpus), area), region) in nodes.iter().zip(&areas).zip(&regions) {
            let stop = &stop;
            scope.spawn(move || {
                pinning::restrict(0, &cpus[..1]);
                while !stop.load(Relaxed) {
                    for page in 0..area.pages() {
                        region.touch(page * PAGE);
                        area.word(page).fetch_add(1, Relaxed);
                    }
                }
            });
        }
        if !options.idle {
            balancer.start().map_err(|error| error.to_string())?;
        }
        let mut now = shares();
        while now.iter().any(|share| *share < ENOUGH) && began.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(200));
            now = shares();
        }
        stop.store(true, Relaxed);
        Ok::<_, String>((began.elapsed(), now))
    })?;
    balancer.stop();
    let lowest = |shares: &[f64]| shares.iter().copied().fold(1.0, f64::min);
    let report = balancer.report();
    let sum =
        |of: fn(&percid_numa::RegionReport) -> u64| -> u64 { report.regions.iter().map(of).sum() };
    let failed: Vec<_> = report.regions.iter().flat_map(|region| &region.failed).collect();
    let lost =
        areas.iter().any(|area| (0..area.pages()).any(|page| area.word(page).load(Relaxed) < 2));
    let figures = format!(
        "nodes={} access={} huge={} seconds={:.1} share_before={:.3} share_after={:.3} passes={} scanned={} \
         moved={} failed={failed:?} scan_share={:.4} move_seconds={:.1} period_ms={} lost={lost}",
        nodes.len(),
        options.access,
        options.huge,
        took.as_secs_f64(),
        lowest(&before),
        lowest(&after),
        report.passes,
        sum(|region| region.scanned),
        sum(|region| region.moved),
        report.scan_share(),
        report.move_time.as_secs_f64(),
        report.period.as_millis(),
    );
    if lowest(&after) >= ENOUGH && lowest(&before) < 0.1 && !lost {
        Ok(figures)
    } else {
        Err(figures)
    }
}

/// Registers an area for an access method.
pub(super) fn register(
    balancer: &Balancer,
    area: &Area,
    access: AccessMethod,
) -> Result<Region, String> {
    let region = match access {
        AccessMethod::Reported => balancer.register(area.start(), area.bytes()),
        // SAFETY: areas stay as they are until their regions are dropped, hold no stack, and are
        // given to no system call.
        AccessMethod::Trapped => unsafe { balancer.register_trapped(area.start(), area.bytes()) },
        AccessMethod::Written => balancer.register_written(area.start(), area.bytes()),
    };
    region.map_err(|error| error.to_string())
}
