//! How many CPUs and IDs are in use at a time.

use serde::Serialize;

use super::cpus::Cpus;
use super::process::{ProcessState, Touch};
use crate::policies::Id;
use crate::time::{MS, Ns};

/// The time from one sample to the next.
const PERIOD: Ns = 10 * MS;

/// What was used within this time counts as in use: the time after which IDs expire (R7).
const WINDOW: Ns = 100 * MS;

/// A figure that is sampled every 10 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Gauge {
    /// The largest sample.
    pub most: u32,
    /// The sum of all samples.
    pub sum: u64,
}

impl Gauge {
    fn note(&mut self, figure: u32) {
        self.most = self.most.max(figure);
        self.sum += u64::from(figure);
    }

    fn add(&mut self, other: Gauge) {
        self.most = self.most.max(other.most);
        self.sum += other.sum;
    }
}

/// How many CPUs and IDs were in use, sampled every 10 ms while wakes go astray, or all the time if
/// they never do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// How many samples were taken.
    pub samples: u64,
    /// CPUs that ran something at that time.
    pub running: Gauge,
    /// CPUs that ran something within the last 100 ms.
    pub visited: Gauge,
    /// One more than the largest ID that the first process used within the last 100 ms.
    pub ids: Gauge,
}

impl Usage {
    /// Adds what another run found.
    pub(super) fn add(&mut self, other: &Usage) {
        self.samples += other.samples;
        self.running.add(other.running);
        self.visited.add(other.visited);
        self.ids.add(other.ids);
    }
}

/// How long extra IDs may stay when wakes do not go astray any more.
const SETTLING: Ns = 200 * MS;

/// What became of the IDs after the last wake could go astray.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Quiet {
    /// One more than the largest ID that the first process used in the last 100 ms of the run.
    pub ids: u32,
    /// `min(allowed CPUs, threads)` of the first process at its end.
    pub bound: u32,
    /// How long an ID at or above that was still used, in nanoseconds; 0 if none was.
    pub above_bound_ns: Ns,
    /// Runs in which a slow path was taken at least 200 ms later: from then on no ID may reach the
    /// bound.
    pub asked: u64,
    /// For how long after that slow path one still did, in nanoseconds.
    pub overdue_ns: Ns,
}

impl Quiet {
    /// Takes the larger one of each figure; counts add up.
    pub(super) fn add(&mut self, other: &Quiet) {
        self.ids = self.ids.max(other.ids);
        self.bound = self.bound.max(other.bound);
        self.above_bound_ns = self.above_bound_ns.max(other.above_bound_ns);
        self.asked += other.asked;
        self.overdue_ns = self.overdue_ns.max(other.overdue_ns);
    }
}

/// Samples a simulation.
#[derive(Debug)]
pub(super) struct Sampler {
    next: Ns,
    /// From when on no wake goes astray, if any does before.
    quiet_from: Option<Ns>,
    /// When the first process took a slow path for the first time after it had been quiet for long.
    asked: Option<Ns>,
    pub(super) usage: Usage,
    pub(super) quiet: Option<Quiet>,
}

impl Sampler {
    pub(super) fn new(quiet_from: Option<Ns>) -> Sampler {
        Sampler { next: PERIOD, quiet_from, asked: None, usage: Usage::default(), quiet: None }
    }

    /// Takes a sample if it is time to. `at` is the time of the next event, which has not happened.
    pub(super) fn sample(&mut self, at: Ns, cpus: &Cpus, first: &ProcessState) {
        if at < self.next {
            return;
        }
        let time = at / PERIOD * PERIOD;
        self.next = time + PERIOD;
        if self.quiet_from.is_some_and(|from| time > from) {
            return;
        }
        self.usage.samples += 1;
        self.usage.running.note(cpus.running());
        self.usage.visited.note(visited(cpus, time));
        self.usage.ids.note(ids_lately(first, time));
    }

    /// The first process uses an ID; `bound` is the number of IDs that it needs.
    pub(super) fn note_use(&mut self, now: Ns, id: Id, bound: u32) {
        if let Some(since) = self.quiet_since(now).filter(|_| id >= bound) {
            let quiet = self.quiet.get_or_insert_default();
            quiet.above_bound_ns = since;
            quiet.overdue_ns = self.asked.map_or(0, |asked| now - asked);
        }
    }

    /// The first process takes a slow path.
    pub(super) fn note_slow_path(&mut self, now: Ns) {
        if self.quiet_since(now).is_some_and(|since| since >= SETTLING) {
            self.quiet.get_or_insert_default().asked = 1;
            self.asked.get_or_insert(now);
        }
    }

    /// For how long no wake can have gone astray.
    fn quiet_since(&self, now: Ns) -> Option<Ns> {
        now.checked_sub(self.quiet_from?)
    }

    /// Takes the last sample, when the run is over.
    pub(super) fn finish(&mut self, now: Ns, first: &ProcessState) {
        if self.quiet_from.is_some_and(|from| now > from) {
            let quiet = self.quiet.get_or_insert_default();
            (quiet.ids, quiet.bound) = (ids_lately(first, now), first.bound());
        }
    }
}

/// How many CPUs ran something lately.
fn visited(cpus: &Cpus, time: Ns) -> u32 {
    let lately = |at: Ns| time.saturating_sub(at) < WINDOW;
    let visited =
        cpus.states().iter().filter(|cpu| cpu.runs.is_some() || cpu.stopped.is_some_and(lately));
    visited.count() as u32
}

/// One more than the largest ID that a process used lately.
fn ids_lately(process: &ProcessState, time: Ns) -> u32 {
    let lately = |touch: Touch| time.saturating_sub(touch.at) < WINDOW;
    let last = process.areas.iter().rposition(|touch| touch.is_some_and(lately));
    last.map_or(0, |id| id as u32 + 1)
}
