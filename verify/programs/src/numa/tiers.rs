//! A node without CPUs: unused memory goes there, used memory returns.
//!
//! In these stages the nodes of pages are queried from the kernel, not from the balancer:
//!
//! 1. *demotion*: half of an area is used. In bounded time 95 % of the other half must be on the
//!    nearest node without CPUs, and 95 % of the used one on its thread's node, as before.
//! 2. *promotion*: then all of it is used. 95 % must come to its thread's node.
//! 3. *warm*: an area is used bit by bit, so that each page is cold and then hot. Moves must stay
//!    below twice the rate, one for each direction. To show that there would be more, the same is
//!    done with a rate that limits nothing. Only with small pages: the first huge one of a second
//!    always moves.
//! 4. *off*: without the setting, nothing of an unused area moves.
//!
//! `--idle` is the negative control of the first stage: no balancer runs.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::Scope;
use std::time::{Duration, Instant};

use percid_numa::{AccessMethod, Balancer, Region, RegionReport, Settings, Tiers};

use super::area::{Area, HUGE, PAGE, Pages};
use super::environment::{alone, migrated, nodes, pages, quick};
use super::follow::register;
use super::placement;
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

const BYTES: usize = 2 << 20;
const ENOUGH: f64 = 0.95;

/// Each stage of placement may take this share of the time.
const STAGES: f64 = 3.0;

/// A page that is not used for so long is cold.
const COLD: Duration = Duration::from_secs(2);
/// The warm area: some pages are used at a time, the next ones after this time. It takes the whole
/// area three times as long as it takes a page to become cold.
const WARM_PARTS: usize = 8;
const WARM_STEP: Duration = Duration::from_millis(750);
/// Four rounds.
const WARM_TIME: Duration = Duration::from_secs(24);
/// Maximum rate of moves in each direction, in bytes a second: 16 pages. A round that moves all of
/// it there and back needs ten times as much.
const WARM_RATE: u64 = 16 * PAGE as u64;

pub(crate) fn run(options: &Options) -> Verdict {
    let scene = match Scene::new(options)? {
        Ok(scene) => scene,
        Err(why) => return Ok(format!("skipped: {why}")),
    };
    let placed = scene.place()?;
    if options.idle {
        return Ok(placed);
    }
    Ok(format!("{placed} {} {}", scene.warm()?, scene.off()?))
}

/// The shared data of the stages.
struct Scene<'a> {
    options: &'a Options,
    /// The node of the thread, and its CPUs.
    node: u32,
    cpus: Vec<u32>,
    slow: Vec<u32>,
    /// The nearest of them.
    nearest: u32,
}

/// The work of the thread during a stage.
struct Work<'a> {
    stop: &'a AtomicBool,
    /// Number of pages that are used.
    used: &'a AtomicUsize,
    /// `true` to use them bit by bit.
    warm: bool,
}

impl<'a> Scene<'a> {
    /// Returns the scene. The inner error contains the reason why the test cannot run here.
    fn new(options: &'a Options) -> Result<Result<Scene<'a>, String>, String> {
        let slow = without_cpus();
        if slow.is_empty() {
            return Ok(Err("no node without CPUs".to_owned()));
        }
        if options.access == AccessMethod::Written {
            return Ok(Err("what is only read would be cold".to_owned()));
        }
        alone()?;
        // The last, so that the nearest node without CPUs is not just the first one.
        let (node, cpus) = nodes().pop().ok_or("no node has CPUs")?;
        let nearest = nearest(node, &slow)?;
        Ok(Ok(Scene { options, node, cpus, slow, nearest }))
    }

    fn balancer(&self, tiers: Option<Tiers>) -> Result<Balancer, String> {
        let settings = Settings { tiers, ..quick() };
        let balancer = Balancer::builder().settings(settings).build();
        balancer.map_err(|error| error.to_string())
    }

    fn area(&self) -> Result<Area, String> {
        let bytes = if self.options.huge { 4 * HUGE } else { BYTES };
        Area::on(&self.cpus, bytes, pages(self.options))
    }

    /// Runs the first two stages.
    fn place(&self) -> Verdict {
        let tiers = Tiers { cold_after: COLD, ..Tiers::default() };
        let (balancer, area) = (self.balancer(Some(tiers))?, self.area()?);
        let region = register(&balancer, &area, self.options.access)?;
        let (half, all) = (area.pages() / 2, area.pages());
        let (stop, used) = (AtomicBool::new(false), AtomicUsize::new(half));
        let limit = Duration::from_secs_f64(self.options.seconds / STAGES);
        let stages = std::thread::scope(|scope| {
            let work = Work { stop: &stop, used: &used, warm: false };
            self.start(scope, &area, &region, work);
            let _stop = Stop(&stop);
            if !self.options.idle {
                balancer.start().map_err(|error| error.to_string())?;
            }
            let demotion = self.wait(&area, half, all, limit)?;
            used.store(all, Relaxed);
            let promotion = self.wait(&area, all, all, limit)?;
            Ok::<_, String>((demotion, promotion))
        });
        balancer.stop();
        let (demotion, promotion) = stages?;
        let report = balancer.report();
        let RegionReport { promoted, demoted, .. } = report.regions[0];
        let slow = &report.slow_nodes;
        let figures = format!(
            "access={} huge={} node={} slow={slow:?} nearest={} demotion[{demotion}] promotion[{promotion}] \
             demoted={demoted} promoted={promoted}",
            self.options.access, self.options.huge, self.node, self.nearest,
        );
        // Each page that went there and came back.
        let enough = (half as f64 * ENOUGH) as u64;
        let is_counted = demoted >= enough && promoted >= enough && *slow == self.slow;
        let is_lost = (0..half).any(|page| area.word(page).load(Relaxed) < 2);
        match demotion.is_enough() && promotion.is_enough() && is_counted && !is_lost {
            true => Ok(figures),
            false => Err(figures),
        }
    }

    /// Waits until the used pages are on the thread's node and the others on the nearest one without
    /// CPUs.
    fn wait(
        &self,
        area: &Area,
        used: usize,
        all: usize,
        limit: Duration,
    ) -> Result<Placed, String> {
        let began = Instant::now();
        loop {
            let placed = Placed {
                seconds: began.elapsed().as_secs_f64(),
                used: placement::share(area, 0..used, &[self.node])?,
                unused: match used < all {
                    true => Some(placement::share(area, used..all, &[self.nearest])?),
                    false => None,
                },
            };
            if placed.is_enough() || began.elapsed() > limit {
                return Ok(placed);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Runs the third stage.
    fn warm(&self) -> Verdict {
        let limited = self.wander(WARM_RATE)?;
        let unlimited = self.wander(u64::MAX)?;
        let most = 2.0 * WARM_RATE as f64 / PAGE as f64;
        let figures = format!(
            "warm[moved_per_second={limited:.1} most={most:.0} without_limit={unlimited:.1}]"
        );
        // A second that has begun counts in full; and one grain of each second may be larger.
        let grace = 1.0 + 2.0 / WARM_TIME.as_secs_f64();
        let is_bounded = limited <= most * grace && limited > 0.0;
        match is_bounded && unlimited > most * grace {
            true => Ok(figures),
            false => Err(figures),
        }
    }

    /// Returns how many pages of a warm area move a second, by the kernel's count.
    fn wander(&self, rate: u64) -> Result<f64, String> {
        let tiers = Tiers { cold_after: COLD, rate, ..Tiers::default() };
        let (balancer, area) =
            (self.balancer(Some(tiers))?, Area::on(&self.cpus, BYTES, Pages::Small)?);
        let region = register(&balancer, &area, self.options.access)?;
        let (stop, used) = (AtomicBool::new(false), AtomicUsize::new(area.pages()));
        let before = migrated().ok_or("the kernel does not count migrations")?;
        let began = Instant::now();
        std::thread::scope(|scope| {
            let work = Work { stop: &stop, used: &used, warm: true };
            self.start(scope, &area, &region, work);
            let _stop = Stop(&stop);
            balancer.start().map_err(|error| error.to_string())?;
            std::thread::sleep(WARM_TIME);
            Ok::<_, String>(())
        })?;
        balancer.stop();
        let moved = migrated().ok_or("the kernel does not count migrations")? - before;
        Ok(moved as f64 / began.elapsed().as_secs_f64())
    }

    /// Runs the fourth stage: of two areas, one on the node without CPUs, a part is used.
    fn off(&self) -> Verdict {
        let balancer = self.balancer(None)?;
        let (near, far) = (self.area()?, self.area()?);
        placement::put(&far, self.slow[0])?;
        let near_region = register(&balancer, &near, self.options.access)?;
        let far_region = register(&balancer, &far, self.options.access)?;
        let half = near.pages() / 2;
        let (stop, used, none) =
            (AtomicBool::new(false), AtomicUsize::new(half), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let work = Work { stop: &stop, used: &used, warm: false };
            let idle = Work { stop: &stop, used: &none, warm: false };
            self.start(scope, &near, &near_region, work);
            self.start(scope, &far, &far_region, idle);
            let _stop = Stop(&stop);
            balancer.start().map_err(|error| error.to_string())?;
            std::thread::sleep(3 * COLD);
            Ok::<_, String>(())
        })?;
        balancer.stop();
        let report = balancer.report();
        let counted: u64 = report
            .regions
            .iter()
            .map(|region| region.moved + region.promoted + region.demoted)
            .sum();
        let stayed = [
            placement::share(&near, 0..near.pages(), &[self.node])?,
            placement::share(&far, 0..far.pages(), &self.slow[..1])?,
        ];
        let (armed, slow) =
            (report.regions.iter().map(|of| of.scanned).sum::<u64>(), &report.slow_nodes);
        let figures = format!("off[stayed={stayed:?} moved={counted} armed={armed} slow={slow:?}]");
        match stayed == [1.0; 2] && counted == 0 && armed > 0 && slow.is_empty() {
            true => Ok(figures),
            false => Err(figures),
        }
    }

    /// Starts a thread that uses an area until it is stopped.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        area: &'scope Area,
        region: &'scope Region,
        work: Work<'scope>,
    ) {
        scope.spawn(move || {
            pinning::restrict(0, &self.cpus[..1]);
            work.on(area, region);
        });
    }
}

impl Work<'_> {
    fn on(&self, area: &Area, region: &Region) {
        let began = Instant::now();
        while !self.stop.load(Relaxed) {
            let used = self.used.load(Relaxed);
            for page in part(self.warm, began.elapsed(), used) {
                region.touch(page * PAGE);
                area.word(page).fetch_add(1, Relaxed);
            }
        }
    }
}

/// Returns the pages that are used now.
fn part(warm: bool, time: Duration, used: usize) -> Range<usize> {
    if !warm {
        return 0..used;
    }
    let turn = (time.as_millis() / WARM_STEP.as_millis()) as usize % WARM_PARTS;
    let each = used / WARM_PARTS;
    turn * each..(turn + 1) * each
}

/// The results of a stage of placement.
struct Placed {
    seconds: f64,
    used: f64,
    unused: Option<f64>,
}

impl Placed {
    fn is_enough(&self) -> bool {
        self.used >= ENOUGH && self.unused.is_none_or(|share| share >= ENOUGH)
    }
}

impl std::fmt::Display for Placed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seconds={:.1} used_here={:.3}", self.seconds, self.used)?;
        self.unused.map_or(Ok(()), |share| write!(f, " unused_on_nearest={share:.3}"))
    }
}

/// Tells the thread to stop when dropped, also after an error.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Returns the nodes that have memory and no CPUs, by the kernel's lists; none if it has no such
/// lists.
fn without_cpus() -> Vec<u32> {
    let read =
        |name: &str| std::fs::read_to_string(format!("/sys/devices/system/node/{name}")).ok();
    let Some((with_cpus, with_memory)) = read("has_cpu").zip(read("has_memory")) else {
        return Vec::new();
    };
    let with_cpus = numbers(&with_cpus);
    numbers(&with_memory).into_iter().filter(|node| !with_cpus.contains(node)).collect()
}

/// Returns which of some nodes is nearest to another one, by the firmware's table.
fn nearest(from: u32, nodes: &[u32]) -> Result<u32, String> {
    let path = format!("/sys/devices/system/node/node{from}/distance");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    // These machines have no gaps between the numbers of their nodes.
    let distances: Vec<u32> = text.split_whitespace().filter_map(|far| far.parse().ok()).collect();
    let distance = |node: &u32| distances.get(*node as usize).copied().unwrap_or(u32::MAX);
    nodes.iter().copied().min_by_key(distance).ok_or_else(|| "no node without CPUs".to_owned())
}

/// Parses a list such as `0-3,8`.
fn numbers(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}
