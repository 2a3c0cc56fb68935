//! NUMA01_THREADLOCAL: all memory is on one node first, then every thread writes to its own slice.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use percid_numa::{AccessMethod, Balancer, Region, Report};

use super::area::Area;
use super::place;
use super::plan::{Plan, ThreadPlace};
use crate::busy::{Noise, Watch};
use crate::deadline::Deadline;
use crate::numa::pages::{self, page_size};
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::progress::{Progress, WORTH_TELLING};

/// Interval between two samples of the bytes written.
const LOOK: Duration = Duration::from_millis(50);

/// The nodes on which the memory is.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub(super) by_node: BTreeMap<u32, u64>,
    /// Pages on the node of their slice's thread.
    pub(super) placed: u64,
}

/// Measurements of one run.
#[derive(Debug)]
pub(super) struct Course {
    /// Bytes written since the beginning of the second part, by the time since then.
    pub(super) written: Vec<(Duration, u64)>,
    pub(super) before: Placement,
    pub(super) after: Placement,
    /// Ctrl-C, or the time limit of the first part, came before the run was over.
    pub(super) cut_short: bool,
    /// The load of other processes, if times are noise.
    pub(super) noise: Option<Noise>,
    /// The report of the balancer, if there is one.
    pub(super) report: Option<Report>,
}

/// State shared by the threads.
struct Shared<'a> {
    plan: &'a Plan,
    area: &'a Area,
    region: Option<&'a Region>,
    /// Threads that have finished the first part.
    ready: AtomicU32,
    /// `true` once the second part has begun.
    go: AtomicBool,
    stop: AtomicBool,
    /// Bytes that each thread has written in the second part.
    written: Vec<Written>,
    error: Mutex<Option<io::Error>>,
}

/// Count on its own cache line, and on the adjacent line that the prefetcher loads with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Written(AtomicU64);

/// Position of this run among all runs, for the progress display.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) label: String,
    /// Number of finished runs.
    pub(super) over: usize,
    pub(super) all: usize,
}

impl Stage {
    /// Returns the share of all runs that is over at some time into this one, and the remaining
    /// time without the first parts.
    fn ahead(&self, elapsed: Duration, length: Duration) -> (f64, Duration) {
        let all = length.saturating_mul(self.all as u32);
        let over = length.saturating_mul(self.over as u32).saturating_add(elapsed.min(length));
        (over.as_secs_f64() / all.as_secs_f64(), all.saturating_sub(over))
    }
}

pub(super) fn run(
    plan: &Plan,
    balancer: Option<&Balancer>,
    stage: &Stage,
    interrupt: &Interrupt,
) -> Result<Course, Failure> {
    let no_memory = |cause| Failure::new("cannot get the memory", cause);
    let area = Area::new(plan.bytes()).map_err(no_memory)?;
    let region = balancer.map(|balancer| register(plan, &area, balancer)).transpose()?;
    let shared = Shared {
        plan,
        area: &area,
        region: region.as_ref(),
        ready: AtomicU32::new(0),
        go: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        written: plan.places.iter().map(|_| Written::default()).collect(),
        error: Mutex::new(None),
    };
    let mut course = thread::scope(|scope| {
        for (number, place) in plan.places.iter().enumerate() {
            let (name, shared) = (format!("percid-demo-{number}"), &shared);
            let started = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || shared.work(number, place));
            if let Err(cause) = started {
                shared.stop.store(true, Relaxed);
                return Err(Failure::new("cannot start a thread", cause));
            }
        }
        Ok(shared.oversee(stage, interrupt))
    })?;
    let error = shared.error.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(cause) = error {
        return Err(Failure::new("cannot confine a thread or bind its memory to a node", cause));
    }
    if let Some(balancer) = balancer {
        balancer.stop();
        course.report = Some(balancer.report());
    }
    course.after = placement(plan, &area);
    Ok(course)
}

/// Registers the memory, and starts balancing.
fn register(plan: &Plan, area: &Area, balancer: &Balancer) -> Result<Region, Failure> {
    let region = match plan.access {
        AccessMethod::Reported => balancer.register(area.start(), plan.bytes()),
        // SAFETY: the area stays as it is until the region is dropped, holds no stack, and is given
        // to no system call; SIGSEGV is not blocked.
        AccessMethod::Trapped => unsafe { balancer.register_trapped(area.start(), plan.bytes()) },
        AccessMethod::Written => balancer.register_written(area.start(), plan.bytes()),
    };
    let region = region
        .map_err(|error| Failure::new("cannot register the memory", io::Error::other(error)))?;
    balancer.start().map_err(|cause| Failure::new("cannot start the balancer's thread", cause))?;
    Ok(region)
}

/// Returns the duration of the first part on a slow machine: every thread writes all of the memory.
fn expected(bytes: usize) -> Duration {
    const BYTES_PER_SECOND: f64 = 64e6;
    Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND)
}

fn slice(plan: &Plan, thread: usize) -> Range<usize> {
    thread * plan.slice..(thread + 1) * plan.slice
}

/// Looks up the nodes of the memory; the result is empty if the kernel does not report them.
fn placement(plan: &Plan, area: &Area) -> Placement {
    let mut placement = Placement::default();
    for (thread, place) in plan.places.iter().enumerate() {
        let addresses = area.addresses(&slice(plan, thread));
        for (node, pages) in pages::by_node(addresses).unwrap_or_default() {
            *placement.by_node.entry(node).or_insert(0) += pages;
            placement.placed += if node == place.node { pages } else { 0 };
        }
    }
    placement
}

impl Shared<'_> {
    /// Waits for the first part, starts the second, and ends it.
    fn oversee(&self, stage: &Stage, interrupt: &Interrupt) -> Course {
        let length = self.plan.length;
        let progress = Progress::new(&stage.label, Duration::MAX);
        let mut watch = Watch::start();
        let began = Instant::now();
        let beginning = Deadline::new(length.saturating_add(expected(self.plan.bytes())), 0);
        while (self.ready.load(Acquire) as usize) < self.plan.places.len() {
            self.stop_if(interrupt.pressed() || beginning.is_overdue());
            interrupt.sleep(if interrupt.pressed() { Duration::ZERO } else { LOOK });
            thread::yield_now();
            if began.elapsed() > WORTH_TELLING {
                progress.after(began.elapsed());
            }
        }
        let before = placement(self.plan, self.area);
        self.go.store(true, Release);
        let began = Instant::now();
        let mut written = vec![(Duration::ZERO, 0)];
        while began.elapsed() < length && !self.stop.load(Relaxed) {
            interrupt.sleep(LOOK.min(length.saturating_sub(began.elapsed())));
            written.push((began.elapsed(), self.sum()));
            watch.look(0);
            self.stop_if(interrupt.pressed());
            let (fraction, left) = stage.ahead(began.elapsed(), length);
            if length.saturating_mul(stage.all as u32) > WORTH_TELLING {
                progress.at(fraction, left);
            }
        }
        let cut_short = self.stop.swap(true, Relaxed);
        let noise = watch.noise();
        Course { written, before, after: Placement::default(), cut_short, noise, report: None }
    }

    fn stop_if(&self, is_over: bool) {
        if is_over {
            self.stop.store(true, Relaxed);
        }
    }

    fn sum(&self) -> u64 {
        self.written.iter().map(|Written(bytes)| bytes.load(Relaxed)).sum()
    }

    /// Runs a thread of the workload.
    fn work(&self, number: usize, place: &ThreadPlace) {
        if let Err(error) = self.begin(place) {
            self.stop.store(true, Relaxed);
            *self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
        }
        self.ready.fetch_add(1, AcqRel);
        while !self.go.load(Acquire) {
            if self.stop.load(Relaxed) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let Written(written) = &self.written[number];
        let pages = slice(self.plan, number).step_by(page_size());
        for offset in pages.cycle() {
            if self.stop.load(Relaxed) {
                return;
            }
            self.touch(offset);
            // SAFETY: the slices of threads are disjoint, and since `go` each thread uses its own
            // only.
            unsafe { self.area.zero_own(offset) };
            // No other thread writes there.
            written.store(written.load(Relaxed) + page_size() as u64, Relaxed);
        }
    }

    /// Executes the first part: writes all of the memory, on one node.
    fn begin(&self, place: &ThreadPlace) -> io::Result<()> {
        place::confine(&place.cpus)?;
        if self.plan.has_nodes() {
            place::bind(Some(self.plan.first_node))?;
        }
        for offset in (0..self.plan.bytes()).step_by(page_size()) {
            if self.stop.load(Relaxed) {
                break;
            }
            self.touch(offset);
            self.area.zero_shared(offset);
        }
        if self.plan.has_nodes() { place::bind(None) } else { Ok(()) }
    }

    fn touch(&self, offset: usize) {
        if let Some(region) = self.region {
            region.touch(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_that_of_all_runs() {
        let stage = Stage { label: String::new(), over: 3, all: 8 };
        let s = Duration::from_secs;
        assert_eq!(stage.ahead(s(0), s(10)), (0.375, s(50)));
        assert_eq!(stage.ahead(s(5), s(10)), (0.4375, s(45)));
        assert_eq!(stage.ahead(s(99), s(10)), (0.5, s(40)));
    }
}
