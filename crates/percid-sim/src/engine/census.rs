//! How many CPUs and IDs are in use at a time.

use serde::Serialize;

use super::Simulation;
use super::process::Touch;
use crate::policies::Id;
use crate::topology::Cpu;
use crate::{MS, Ns};

/// From one look to the next.
pub(super) const PERIOD: Ns = 10 * MS;

/// What was used within this time counts as in use: the time after which IDs expire (R7).
const WINDOW: Ns = 100 * MS;

/// A figure that was looked at every 10 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Watched {
    /// The largest.
    pub most: u32,
    /// The sum of all looks.
    pub sum: u64,
}

impl Watched {
    fn note(&mut self, figure: u32) {
        self.most = self.most.max(figure);
        self.sum += u64::from(figure);
    }

    fn add(&mut self, other: Watched) {
        self.most = self.most.max(other.most);
        self.sum += other.sum;
    }
}

/// How many CPUs and IDs were in use, as looked at every 10 ms while wakes go astray, or all the time if they never do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Census {
    /// How often it was looked.
    pub looks: u64,
    /// CPUs that ran something at that time.
    pub running: Watched,
    /// CPUs that ran something within the last 100 ms.
    pub visited: Watched,
    /// One more than the largest ID that the first process used within the last 100 ms.
    pub ids: Watched,
}

impl Census {
    /// Adds what another run found.
    pub(super) fn add(&mut self, other: &Census) {
        self.looks += other.looks;
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
    /// Runs in which a slow path was gone through at least 200 ms later: from then on no ID may reach the bound.
    pub asked: u64,
    /// For how long after that slow path one still did, in nanoseconds.
    pub overdue_ns: Ns,
}

impl Quiet {
    /// Of each figure the larger one; counts add up.
    pub(super) fn add(&mut self, other: &Quiet) {
        self.ids = self.ids.max(other.ids);
        self.bound = self.bound.max(other.bound);
        self.above_bound_ns = self.above_bound_ns.max(other.above_bound_ns);
        self.asked += other.asked;
        self.overdue_ns = self.overdue_ns.max(other.overdue_ns);
    }
}

impl Simulation<'_> {
    /// Looks, if it is time to. To be called with the time of the next event, before it happens.
    pub(super) fn look(&mut self, at: Ns) {
        if at < self.next_look {
            return;
        }
        let time = at / PERIOD * PERIOD;
        self.next_look = time + PERIOD;
        if self.quiet_from.is_some_and(|from| time > from) {
            return;
        }
        let running = self.topology.cpus() - self.idle.len();
        let visited = (0..self.topology.cpus()).filter(|&cpu| self.was_visited(cpu, time)).count();
        let ids = self.ids_lately(time);
        let census = &mut self.outcome.census;
        census.looks += 1;
        census.running.note(running);
        census.visited.note(visited as u32);
        census.ids.note(ids);
    }

    fn was_visited(&self, cpu: Cpu, time: Ns) -> bool {
        let state = &self.cpus[cpu as usize];
        state.runs.is_some() || state.stopped.is_some_and(|at| time.saturating_sub(at) < WINDOW)
    }

    /// One more than the largest ID that the first process used lately.
    fn ids_lately(&self, time: Ns) -> u32 {
        let areas = self.processes.first().map_or(&[][..], |process| &process.areas);
        let used = |touch: Touch| time.saturating_sub(touch.at) < WINDOW;
        areas.iter().rposition(|touch| touch.is_some_and(used)).map_or(0, |id| id as u32 + 1)
    }

    /// The first process uses an ID.
    pub(super) fn note_use(&mut self, id: Id, bound: u32) {
        if let Some(since) = self.quiet_since().filter(|_| id >= bound) {
            let quiet = self.outcome.quiet.get_or_insert_default();
            quiet.above_bound_ns = since;
            quiet.overdue_ns = self.asked.map_or(0, |asked| self.now - asked);
        }
    }

    /// A process goes through a slow path.
    pub(super) fn note_slow_path(&mut self, process: u32) {
        if process == 0 && self.quiet_since().is_some_and(|since| since >= SETTLING) {
            self.outcome.quiet.get_or_insert_default().asked = 1;
            self.asked.get_or_insert(self.now);
        }
    }

    /// For how long no wake can have gone astray.
    fn quiet_since(&self) -> Option<Ns> {
        self.now.checked_sub(self.quiet_from?)
    }

    /// Looks for the last time, when the run is over.
    pub(super) fn last_look(&mut self) {
        let is_quiet = self.quiet_from.is_some_and(|from| self.now > from);
        let Some(process) = self.processes.first().filter(|_| is_quiet) else { return };
        let bound = process.bound();
        let ids = self.ids_lately(self.now);
        let quiet = self.outcome.quiet.get_or_insert_default();
        (quiet.ids, quiet.bound) = (ids, bound);
    }
}
