//! The number of CPUs and IDs in use at a time.

use serde::Serialize;

use super::cpus::Cpus;
use super::process::{ProcessState, Touch};
use super::window::{PERIOD, WINDOW, Window};
use crate::policies::Id;
use crate::time::{MS, Ns};

/// A value that is sampled every 10 ms.
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

/// Number of CPUs and IDs in use, sampled every 10 ms if requested. If wakes go astray at first,
/// only that time is sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Number of samples.
    pub samples: u64,
    /// Number of CPUs that ran something at that time.
    pub running: Gauge,
    /// Number of CPUs that ran something within the last 100 ms.
    pub visited: Gauge,
    /// One more than the largest ID that the first process used within the last 100 ms.
    pub ids: Gauge,
}

impl Usage {
    /// Adds the samples of another run.
    pub(super) fn add(&mut self, other: &Usage) {
        self.samples += other.samples;
        self.running.add(other.running);
        self.visited.add(other.visited);
        self.ids.add(other.ids);
    }
}

/// Time for which extra IDs may stay after wakes stopped going astray.
const SETTLING: Ns = 200 * MS;

/// Use of IDs after the last wake could go astray.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Quiet {
    /// One more than the largest ID that the first process used in the last 100 ms of the run.
    pub ids: u32,
    /// `min(allowed CPUs, threads)` of the first process at its end.
    pub bound: u32,
    /// Time until an ID at or above the bound was last used, in nanoseconds; 0 if none was used.
    pub above_bound_ns: Ns,
    /// Number of runs with a slow path at least 200 ms later. From then on, no ID may reach the
    /// bound.
    pub asked: u64,
    /// Time from that slow path until an ID at or above the bound was last used, in nanoseconds.
    pub overdue_ns: Ns,
}

impl Quiet {
    /// Keeps the larger one of each value; `asked` is summed.
    pub(super) fn add(&mut self, other: &Quiet) {
        self.ids = self.ids.max(other.ids);
        self.bound = self.bound.max(other.bound);
        self.above_bound_ns = self.above_bound_ns.max(other.above_bound_ns);
        self.asked += other.asked;
        self.overdue_ns = self.overdue_ns.max(other.overdue_ns);
    }
}

/// The sampler of a simulation's CPUs and IDs.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Time of the next sample; [`Ns::MAX`] if there will be none.
    next: Ns,
    /// The events that samples need; `None` if there will be no sample.
    window: Option<Window>,
    /// Time from which no wake goes astray; `None` if wakes never go astray.
    quiet_from: Option<Ns>,
    /// Time of the first process's first slow path at least [`SETTLING`] after that.
    asked: Option<Ns>,
    pub(super) usage: Usage,
    pub(super) quiet: Option<Quiet>,
}

impl Sampler {
    /// Creates a sampler that takes no samples.
    pub(super) fn new(quiet_from: Option<Ns>) -> Sampler {
        Sampler {
            next: Ns::MAX,
            window: None,
            quiet_from,
            asked: None,
            usage: Usage::default(),
            quiet: None,
        }
    }

    /// Begins to take samples. No CPU may have run anything yet.
    pub(super) fn begin(&mut self) {
        self.next = PERIOD;
        self.window = Some(Window::default());
    }

    /// Takes a sample if one is due. `at` is the time of the next event, which has not happened
    /// yet.
    #[inline]
    pub(super) fn sample(&mut self, at: Ns, cpus: &Cpus, first: &ProcessState) {
        if at >= self.next {
            self.sample_at(at / PERIOD * PERIOD, cpus, first);
        }
    }

    #[cold]
    fn sample_at(&mut self, time: Ns, cpus: &Cpus, first: &ProcessState) {
        let is_quiet = self.quiet_from.is_some_and(|from| time > from);
        let Some(window) = self.window.as_mut().filter(|_| !is_quiet) else {
            self.next = Ns::MAX;
            self.window = None;
            return;
        };
        self.next = time + PERIOD;
        let (stopped, ids) = window.sample(time);
        let visited = cpus.running() + stopped;
        debug_assert_eq!((visited, ids), (visited_lately(cpus, time), ids_lately(first, time)));
        self.usage.samples += 1;
        self.usage.running.note(cpus.running());
        self.usage.visited.note(visited);
        self.usage.ids.note(ids);
    }

    /// Records that a CPU becomes idle.
    #[inline]
    pub(super) fn note_idle(&mut self, now: Ns) {
        if let Some(window) = &mut self.window {
            window.note_idle(now);
        }
    }

    /// Records that an idle CPU begins to run something; `stopped` is the time at which it became
    /// idle, if it ran before.
    #[inline]
    pub(super) fn note_busy(&mut self, now: Ns, stopped: Option<Ns>) {
        if let Some(window) = &mut self.window {
            window.note_busy(now, stopped);
        }
    }

    /// Records that the first process loses its memory.
    pub(super) fn note_memory_lost(&mut self) {
        if let Some(window) = &mut self.window {
            window.forget_ids();
        }
    }

    /// Records that the first process uses an ID; `bound` is the number of IDs that it needs.
    pub(super) fn note_use(&mut self, now: Ns, id: Id, bound: u32) {
        if let Some(window) = &mut self.window {
            window.note_id(now, id);
        }
        if let Some(since) = self.quiet_since(now).filter(|_| id >= bound) {
            let quiet = self.quiet.get_or_insert_default();
            quiet.above_bound_ns = since;
            quiet.overdue_ns = self.asked.map_or(0, |asked| now - asked);
        }
    }

    /// Records that the first process takes a slow path.
    pub(super) fn note_slow_path(&mut self, now: Ns) {
        if self.quiet_since(now).is_some_and(|since| since >= SETTLING) {
            self.quiet.get_or_insert_default().asked = 1;
            self.asked.get_or_insert(now);
        }
    }

    /// Returns the time for which no wake can have gone astray.
    fn quiet_since(&self, now: Ns) -> Option<Ns> {
        now.checked_sub(self.quiet_from?)
    }

    /// Takes the last sample at the end of the run.
    pub(super) fn finish(&mut self, now: Ns, first: &ProcessState) {
        if self.quiet_from.is_some_and(|from| now > from) {
            let quiet = self.quiet.get_or_insert_default();
            (quiet.ids, quiet.bound) = (ids_lately(first, now), first.bound());
        }
    }
}

/// Returns the number of CPUs that ran something within [`WINDOW`], by a search.
fn visited_lately(cpus: &Cpus, time: Ns) -> u32 {
    let lately = |at: Ns| time.saturating_sub(at) < WINDOW;
    let visited =
        cpus.states().iter().filter(|cpu| cpu.runs.is_some() || cpu.stopped.is_some_and(lately));
    visited.count() as u32
}

/// Returns one more than the largest ID that a process used within [`WINDOW`], by a search.
fn ids_lately(process: &ProcessState, time: Ns) -> u32 {
    let lately = |touch: Touch| time.saturating_sub(touch.at) < WINDOW;
    let last = process.areas.iter().rposition(|touch| touch.is_some_and(lately));
    last.map_or(0, |id| id as u32 + 1)
}
