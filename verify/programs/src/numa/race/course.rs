//! A contender's way through the scenes.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid_numa::{AccessMethod, Balancer, Report};

use super::contender::Contender;
use super::figures::{Figures, Stages};
use super::scene::{Scene, Stage};
use super::threads::{Place, Team};
use crate::numa::area::{Area, PAGE, Pages};
use crate::numa::follow::register;
use crate::options::Options;
use crate::random::seed;

const BYTES: usize = 16 << 20;
/// Memory is placed when this share of it is.
const ENOUGH: f64 = 0.95;
/// Interval between looks, and the number of pages of which one is looked at.
const LOOK: Duration = Duration::from_millis(100);
const SAMPLE: usize = 16;

pub(super) fn run(
    options: &Options,
    contender: Contender,
    nodes: &[(u32, Vec<u32>)],
) -> Result<Vec<Figures>, String> {
    contender.switch_kernel()?;
    let balancer = contender.has_balancer().then(Balancer::new);
    if let Some(balancer) = &balancer {
        balancer.start().map_err(|error| error.to_string())?;
    }
    let course = Course { options, nodes, places: places(nodes, options.per_node.get()), balancer };
    let mut figures = Vec::new();
    for &scene in &options.scenes {
        figures.extend(course.play(scene)?);
    }
    Ok(figures)
}

/// Threads in blocks: neighbours are on one node.
fn places(nodes: &[(u32, Vec<u32>)], per_node: usize) -> Vec<Place> {
    let of_node = |(node, cpus): &(u32, Vec<u32>)| {
        let (node, cpus) = (*node, cpus.clone());
        (0..per_node).map(move |number| Place { node, cpu: cpus[number % cpus.len()] })
    };
    nodes.iter().flat_map(of_node).collect()
}

struct Course<'a> {
    options: &'a Options,
    nodes: &'a [(u32, Vec<u32>)],
    places: Vec<Place>,
    balancer: Option<Balancer>,
}

impl Course<'_> {
    fn play(&self, scene: Scene) -> Result<Vec<Figures>, String> {
        let area = match scene {
            Scene::FirstTouch => Area::new(BYTES)?,
            _ => Area::on(&self.nodes[0].1, BYTES, Pages::Small)?,
        };
        let balancer = self.balancer.as_ref();
        let region = balancer.map(|balancer| register(balancer, &area, self.options.access));
        let region = region.transpose()?;
        let team = Team {
            scene,
            area: &area,
            region: region.as_ref().filter(|_| self.options.access == AccessMethod::Reported),
            places: &self.places,
            stage: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            uses: AtomicU64::new(0),
            seed: seed(),
        };
        std::thread::scope(|scope| {
            for number in 0..self.places.len() {
                let team = &team;
                scope.spawn(move || team.work(number));
            }
            let stages = scene.stages().iter().enumerate();
            let figures = stages.map(|(number, stage)| self.watch(&team, number, stage)).collect();
            team.stop.store(true, Relaxed);
            figures
        })
    }

    /// Begins a stage, and looks on until it is over.
    fn watch(&self, team: &Team<'_>, number: usize, stage: &Stage) -> Result<Figures, String> {
        let before = self.counts(team)?;
        team.stage.store(number, Relaxed);
        let began = Instant::now();
        let limit = Duration::from_secs_f64(self.options.seconds);
        let mut seconds = None;
        let mut half = None;
        let may_end = stage.ends_when_placed && !self.options.lasting;
        while began.elapsed() < limit && !(may_end && seconds.is_some()) {
            std::thread::sleep(LOOK);
            if half.is_none() && began.elapsed() >= limit / 2 {
                half = Some((Instant::now(), self.counts(team)?.moved));
            }
            let share = self.share(team, number, SAMPLE)?;
            if seconds.is_none() && share.is_some_and(|share| share >= ENOUGH) {
                seconds = Some(began.elapsed().as_secs_f64());
            }
        }
        let ended = Instant::now();
        let (after, share) = (self.counts(team)?, self.share(team, number, 1)?);
        let lasted = (ended - began).as_secs_f64();
        let moved = after.moved - before.moved;
        // Memory may settle first.
        let (since, moved_before) = half.unwrap_or((began, before.moved));
        let moved_late = (after.moved - moved_before) as f64 / team.area.pages() as f64;
        let seen = after.seen - before.seen;
        let is_reported = team.region.is_some();
        Ok(Figures {
            stage: stage.name.to_owned(),
            seconds,
            lasted,
            share,
            hint_faults: after.hint_faults - before.hint_faults,
            pte_updates: after.pte_updates - before.pte_updates,
            shootdowns: after
                .shootdowns
                .zip(before.shootdowns)
                .map(|(after, before)| after - before),
            caught: if is_reported { 0 } else { seen },
            reported: if is_reported { seen } else { 0 },
            moved,
            moved_per_second: moved_late / (ended - since).as_secs_f64(),
            scan_share: self.report().map_or(0.0, |report| report.scan_share()),
            run_time: self.report().map_or(0.0, |report| report.run_time.as_secs_f64()),
            uses_per_second: (after.uses - before.uses) as f64 / lasted,
            stages: self.report().and_then(|report| Stages::of(report.timeline.last()?)),
        })
    }

    fn report(&self) -> Option<Report> {
        self.balancer.as_ref().map(Balancer::report)
    }

    fn counts(&self, team: &Team<'_>) -> Result<Counts, String> {
        let file = std::fs::read_to_string("/proc/vmstat").map_err(|error| error.to_string())?;
        let count = |name: &str| {
            let value = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        let regions = self.report().map(|report| report.regions).unwrap_or_default();
        Ok(Counts {
            moved: count("pgmigrate_success"),
            hint_faults: count("numa_hint_faults"),
            pte_updates: count("numa_pte_updates"),
            shootdowns: shootdowns(
                &std::fs::read_to_string("/proc/interrupts").unwrap_or_default(),
            ),
            seen: regions.iter().map(|region| region.local + region.remote).sum(),
            uses: team.uses.load(Relaxed),
        })
    }

    /// Returns the share of the threads' own memory, each `step`th page of it, that is on their
    /// nodes; `None` if they have none.
    fn share(&self, team: &Team<'_>, stage: usize, step: usize) -> Result<Option<f64>, String> {
        let (mut addresses, mut wanted) = (Vec::new(), Vec::new());
        for (thread, place) in self.places.iter().enumerate() {
            let own = team.scene.own(stage, thread, self.places.len(), team.area.pages());
            for page in own.step_by(step) {
                addresses.push(team.area.start().addr() + page * PAGE);
                wanted.push(place.node as i32);
            }
        }
        if addresses.is_empty() {
            return Ok(None);
        }
        let nodes = whereabouts(&addresses)?;
        let placed = nodes.iter().zip(&wanted).filter(|(node, wanted)| node == wanted).count();
        Ok(Some(placed as f64 / wanted.len() as f64))
    }
}

/// Counts since the start of the machine, or of the process.
struct Counts {
    moved: u64,
    hint_faults: u64,
    pte_updates: u64,
    shootdowns: Option<u64>,
    seen: u64,
    uses: u64,
}

/// Adds up the line `TLB shootdowns` of x86-64 in `/proc/interrupts` over all CPUs.
fn shootdowns(interrupts: &str) -> Option<u64> {
    let line = interrupts.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    let counts = line.split_ascii_whitespace().map_while(|count| count.parse::<u64>().ok());
    Some(counts.sum())
}

/// Returns the node of each page, or a negative `errno`: from the kernel, not from the balancer.
fn whereabouts(addresses: &[usize]) -> Result<Vec<i32>, String> {
    let mut nodes = vec![-1i32; addresses.len()];
    // SAFETY: both arrays have `addresses.len()` entries; without nodes nothing is moved.
    let result = unsafe {
        let none = std::ptr::null::<i32>();
        let (count, status) = (addresses.len(), nodes.as_mut_ptr());
        libc::syscall(libc::SYS_move_pages, 0, count, addresses.as_ptr(), none, status, 0)
    };
    if result == 0 { Ok(nodes) } else { Err(std::io::Error::last_os_error().to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shootdowns_of_all_cpus_are_added() {
        let file = "            CPU0       CPU1\n  RES:  5  6  Rescheduling interrupts\n  \
                    TLB:         12          3   TLB shootdowns\n";
        assert_eq!(shootdowns(file), Some(15));
        assert_eq!(shootdowns("IPI0:  1  2  Rescheduling interrupts\n"), None);
    }
}
