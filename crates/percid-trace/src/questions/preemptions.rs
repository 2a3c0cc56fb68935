//! Threads that keep other threads from running.

use std::collections::HashMap;

use percid_sim::run_control::RunControl;

use super::follower::{Follower, Listener, Scene};
use super::turn::{Stay, Who};
use crate::event::Tid;
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// Whose waits are looked at.
#[derive(Debug, Clone, Default)]
pub struct PreemptionsSettings {
    /// The window to analyse.
    pub window: Window,
    /// The processes whose threads are analysed; all if it is empty.
    pub processes: Vec<Tid>,
}

/// The result of [`preemptions`].
#[derive(Debug, Clone, Default)]
pub struct Preemptions {
    /// The delays of each pair of threads, in no order.
    pub delays: Vec<Delay>,
    /// Time that threads waited in queues, all together, in nanoseconds.
    pub waited_ns: u64,
    /// The part of `waited_ns` that `delays` does not explain: time in a long wait before the last
    /// 64 turns of a CPU, time for which the recording does not contain what a CPU ran, and the
    /// time of pairs beyond the first million.
    pub unattributed_ns: u64,
    /// The identities of the threads.
    pub known: Threads,
    /// `true` if the whole window was analysed.
    pub is_whole: bool,
}

/// The delays of one thread by another, or while its CPU was idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// The thread that waited.
    pub victim: ThreadNumber,
    /// The thread, or idleness, of the CPU in whose queue the victim was.
    pub by: Who,
    /// Time altogether, in nanoseconds.
    pub ns: u64,
    /// Number of stays in a queue that had such a delay.
    pub waits: u64,
    /// The longest time in one of them, in nanoseconds.
    pub longest_ns: u64,
    /// Number of times that it preempted the victim.
    pub preempted: u64,
}

/// The pairs that are kept: 64 bytes each.
const PAIRS: usize = 1_000_000;

/// Finds out which threads keep others from running. Adds processed events to `progress`.
pub fn preemptions(
    trace: &Trace,
    settings: &PreemptionsSettings,
    progress: &RunControl,
) -> Preemptions {
    let mut follower = Follower::new(trace, &settings.window);
    let mut delays = Delays {
        settings,
        sees_some_only: trace.origin.coverage.filtered,
        pairs: HashMap::new(),
        delays: Vec::new(),
        waited_ns: 0,
        attributed_ns: 0,
        parts: Vec::new(),
    };
    let is_whole = follower.follow(&mut delays, progress);
    Preemptions {
        waited_ns: delays.waited_ns,
        unattributed_ns: delays.waited_ns - delays.attributed_ns,
        delays: delays.delays,
        known: follower.into_threads(),
        is_whole,
    }
}

struct Delays<'s> {
    settings: &'s PreemptionsSettings,
    /// `true` if only some threads were recorded. Others move threads from queue to queue unseen,
    /// so the thread that ran on a CPU need not be the cause.
    sees_some_only: bool,
    pairs: HashMap<(ThreadNumber, Who), u32>,
    delays: Vec<Delay>,
    waited_ns: u64,
    attributed_ns: u64,
    /// Parts of the current stay, by what ran in them.
    parts: Vec<(Who, u64)>,
}

impl Listener for Delays<'_> {
    fn preempt(&mut self, scene: &Scene, now: u64, thread: ThreadNumber, by: Who) {
        let is_known = by != Who::Unknown;
        if is_known && self.settings.window.contains(now) && self.wants(scene, thread) {
            if let Some(delay) = self.delay(thread, by) {
                delay.preempted += 1;
            }
        }
    }

    fn dequeue(&mut self, scene: &Scene, stay: Stay) {
        let since = stay.since.max(self.settings.window.from);
        if since >= stay.until || !self.wants(scene, stay.thread) {
            return;
        }
        self.waited_ns = self.waited_ns.saturating_add(stay.until - since);
        let mut parts = std::mem::take(&mut self.parts);
        parts.extend(scene.recent.during(stay.cpu, since, stay.until));
        parts.sort_unstable_by_key(|&(who, _)| who);
        for same in parts.chunk_by(|a, b| a.0 == b.0) {
            let ns = same.iter().map(|&(_, ns)| ns).sum();
            self.attribute(stay.thread, same[0].0, ns);
        }
        parts.clear();
        self.parts = parts;
    }
}

impl Delays<'_> {
    fn wants(&self, scene: &Scene, thread: ThreadNumber) -> bool {
        let processes = &self.settings.processes;
        processes.is_empty() || processes.contains(&scene.threads.get(thread).process_or_self())
    }

    fn attribute(&mut self, victim: ThreadNumber, by: Who, ns: u64) {
        if by == Who::Unknown || self.sees_some_only {
            return;
        }
        let Some(delay) = self.delay(victim, by) else { return };
        delay.ns += ns;
        delay.waits += 1;
        delay.longest_ns = delay.longest_ns.max(ns);
        self.attributed_ns = self.attributed_ns.saturating_add(ns);
    }

    fn delay(&mut self, victim: ThreadNumber, by: Who) -> Option<&mut Delay> {
        let next = self.delays.len();
        let is_full = next >= PAIRS;
        let place = match self.pairs.get(&(victim, by)) {
            Some(&known) => known as usize,
            None if is_full => return None,
            None => {
                self.pairs.insert((victim, by), next as u32);
                let delay = Delay { victim, by, ns: 0, waits: 0, longest_ns: 0, preempted: 0 };
                self.delays.push(delay);
                next
            }
        };
        self.delays.get_mut(place)
    }
}
