//! One thread that uses an area on another node, and whether the area follows.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid_numa::{AccessMethod, Balancer, Region};

use crate::numa::area::{Area, PAGE};
use crate::numa::environment::{nodes, quick};
use crate::numa::follow::register;
use crate::numa::placement;
use crate::pinning;

pub(super) const BYTES: usize = 2 << 20;
const ENOUGH: f64 = 0.95;
/// Emulated CPUs that take turns let an interrupt wait for a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(90);
/// Time by which any move has begun: many periods, and the delay of new regions.
const A_WHILE: Duration = Duration::from_secs(4);

/// The node of the memory at first and the node that uses it, each with a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Two {
    pub(super) home: (u32, u32),
    pub(super) user: (u32, u32),
}

impl Two {
    pub(super) fn of_this_machine() -> Two {
        let nodes = nodes();
        let place = |number: usize| (nodes[number].0, nodes[number].1[0]);
        Two { home: place(0), user: place(1) }
    }
}

/// An area and the balancer that it is registered with; the balancer runs.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) two: Two,
    // Dropped in this order.
    pub(super) region: Region,
    pub(super) balancer: Balancer,
    pub(super) area: Area,
}

impl Scene {
    /// Puts all of the area on the home node.
    pub(super) fn new(area: Area) -> Result<Scene, String> {
        let two = Two::of_this_machine();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pinning::restrict(0, &[two.home.1]);
                (0..area.pages()).for_each(|page| area.word(page).store(1, Relaxed));
            });
        });
        let at_home = placement::share(&area, 0..area.pages(), &[two.home.0])?;
        if at_home < 1.0 {
            return Err(format!("{at_home:.3} are at home at first"));
        }
        let balancer = Balancer::builder().settings(quick()).build();
        let balancer = balancer.map_err(|error| error.to_string())?;
        let region = register(&balancer, &area, AccessMethod::Reported)?;
        balancer.start().map_err(|error| error.to_string())?;
        Ok(Scene { two, region, balancer, area })
    }

    /// Checks that the area follows when it is used from the other node.
    pub(super) fn follows(&self) -> Result<(), String> {
        let there = self.used(PATIENCE, |share| share >= ENOUGH)?;
        let report = self.balancer.report();
        let failed: Vec<_> = report.regions.iter().flat_map(|region| &region.failed).collect();
        if there >= ENOUGH {
            return Ok(());
        }
        Err(format!("{there:.3} followed; failed: {failed:?}; {} passes", report.passes))
    }

    /// Checks that the area stays when it is used from the other node.
    pub(super) fn stays(&self) -> Result<(), String> {
        let there = self.used(A_WHILE, |_| false)?;
        if there == 0.0 { Ok(()) } else { Err(format!("{there:.3} moved")) }
    }

    /// Uses the area for a while more.
    pub(super) fn goes_on(&self) -> Result<(), String> {
        self.used(A_WHILE, |_| false).map(drop)
    }

    /// Checks that the area stays when no thread uses it.
    pub(super) fn rests(&self) -> Result<(), String> {
        std::thread::sleep(A_WHILE);
        let there = self.share_there()?;
        if there == 0.0 { Ok(()) } else { Err(format!("{there:.3} moved, and nobody used it")) }
    }

    fn share_there(&self) -> Result<f64, String> {
        placement::share(&self.area, 0..self.area.pages(), &[self.two.user.0])
    }

    /// Returns the share on the user's node once that is enough, or the time is over.
    fn used(&self, limit: Duration, is_enough: fn(f64) -> bool) -> Result<f64, String> {
        let (stop, began) = (AtomicBool::new(false), Instant::now());
        std::thread::scope(|scope| {
            scope.spawn(|| self.use_until(&stop));
            let mut share = self.share_there();
            while began.elapsed() < limit && share.as_ref().is_ok_and(|share| !is_enough(*share)) {
                std::thread::sleep(Duration::from_millis(200));
                share = self.share_there();
            }
            stop.store(true, Relaxed);
            share
        })
    }

    fn use_until(&self, stop: &AtomicBool) {
        pinning::restrict(0, &[self.two.user.1]);
        while !stop.load(Relaxed) {
            for page in 0..self.area.pages() {
                self.region.touch(page * PAGE);
                self.area.word(page).fetch_add(1, Relaxed);
            }
        }
    }
}
