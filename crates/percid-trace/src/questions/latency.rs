//! Times that threads wait for a CPU.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use percid_sim::run_control::RunControl;

use super::follower::{Follower, Listener, Scene};
use super::histogram::Histogram;
use super::turn::{Cause, Wait, Who};
use super::wakeups::Wakeups;
use crate::event::{Cpu, Tid};
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// Settings of [`latency`]: the waits to analyse, and the number of long waits to report one by
/// one.
#[derive(Debug, Clone, Default)]
pub struct LatencySettings {
    /// The window in which the waits must end.
    pub window: Window,
    /// The processes whose threads are analysed; all if it is empty.
    pub processes: Vec<Tid>,
    /// Number of longest waits to report.
    pub worst: usize,
}

/// The result of [`latency`].
#[derive(Debug, Clone, Default)]
pub struct Latency {
    /// The threads that waited, and how long, in the order in which they are met.
    pub threads: Vec<(ThreadNumber, ThreadLatency)>,
    /// The longest waits, the longest first.
    pub worst: Vec<LongWait>,
    /// The kinds of wake-up events that were recorded.
    pub wakeups: Wakeups,
    /// The identities of the threads.
    pub known: Threads,
    /// `true` if the whole window was analysed.
    pub is_whole: bool,
}

/// The waits of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadLatency {
    /// Times from when it was ready until it ran: after it was woken, and after it was preempted.
    pub run_queue: Histogram,
    /// Times from when another thread began to wake it until it ran.
    pub wake_up: Histogram,
    /// Number of the waits in `run_queue` that followed a preemption.
    pub preempted: u64,
    /// Time of these waits together, in nanoseconds.
    pub preempted_ns: u64,
}

impl ThreadLatency {
    /// Counts all that another one has counted.
    pub fn add(&mut self, other: &ThreadLatency) {
        self.run_queue.add(&other.run_queue);
        self.wake_up.add(&other.wake_up);
        self.preempted += other.preempted;
        self.preempted_ns = self.preempted_ns.saturating_add(other.preempted_ns);
    }
}

/// A wait, and what ran instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongWait {
    /// The thread that waited.
    pub thread: ThreadNumber,
    /// Time at which it began to wait, in nanoseconds since the first event.
    pub since: u64,
    /// Length of the wait, in nanoseconds.
    pub ns: u64,
    /// `true` if it had been preempted; `false` if it was woken.
    pub preempted: bool,
    /// The CPU in whose queue it was last.
    pub queue: Cpu,
    /// The CPU that ran it then.
    pub cpu: Cpu,
    /// Threads that the CPU in whose queue it was ran, and for how long, the longest first. Only
    /// the CPU's last 64 turns are included.
    pub instead: Vec<(Who, u64)>,
}

/// Returns the waits of threads for a CPU. Adds processed events to `progress`.
///
/// ```
/// use percid_sim::run_control::RunControl;
/// use percid_trace::questions::{LatencySettings, latency};
///
/// let trace = percid_trace::read::read("tests/fixtures/nginx.parquet".as_ref())?;
/// let settings = LatencySettings { worst: 3, ..LatencySettings::default() };
/// let found = latency(&trace, &settings, &RunControl::default());
/// assert_eq!(found.worst.len(), 3);
/// assert!(found.worst[0].ns >= found.worst[1].ns);
/// # Ok::<(), percid_trace::Error>(())
/// ```
pub fn latency(trace: &Trace, settings: &LatencySettings, progress: &RunControl) -> Latency {
    let mut follower = Follower::new(trace, &settings.window);
    let mut waits = Waits { settings, threads: Vec::new(), worst: BinaryHeap::new(), longest: 0 };
    let is_whole = follower.follow(&mut waits, progress);
    let seen = (0..).zip(waits.threads).filter_map(|(thread, found)| Some((thread, *found?)));
    let mut worst: Vec<Kept> = waits.worst.into_iter().map(|Reverse(kept)| kept).collect();
    worst.sort_by_key(|kept| (Reverse(kept.ns), kept.nth));
    Latency {
        threads: seen.collect(),
        worst: worst.into_iter().map(|kept| kept.wait).collect(),
        wakeups: Wakeups::from_trace(trace),
        known: follower.into_threads(),
        is_whole,
    }
}

struct Waits<'s> {
    settings: &'s LatencySettings,
    threads: Vec<Option<Box<ThreadLatency>>>,
    worst: BinaryHeap<Reverse<Kept>>,
    /// Number of waits so far that have been among the longest.
    longest: u64,
}

/// One of the longest waits. If two waits are equally long, the first is kept.
struct Kept {
    ns: u64,
    nth: u64,
    wait: LongWait,
}

impl Listener for Waits<'_> {
    fn wait(&mut self, scene: &Scene, wait: &Wait) {
        let Wait { thread, until, .. } = *wait;
        let LatencySettings { window, processes, .. } = self.settings;
        let is_wanted = || processes.contains(&scene.threads.get(thread).process_or_self());
        if !window.contains(until) || !processes.is_empty() && !is_wanted() {
            return;
        }
        self.count(wait);
        self.keep(scene, wait);
    }
}

impl Waits<'_> {
    fn count(&mut self, wait: &Wait) {
        let place = wait.thread as usize;
        if place >= self.threads.len() {
            self.threads.resize(place + 1, None);
        }
        let found = self.threads[place].get_or_insert_default();
        let waited = wait.until - wait.queued;
        found.run_queue.note(waited);
        match wait.cause {
            Cause::Woken => found.wake_up.note(wait.until - began(wait)),
            Cause::Preempted => {
                found.preempted += 1;
                found.preempted_ns = found.preempted_ns.saturating_add(waited);
            }
        }
    }

    fn keep(&mut self, scene: &Scene, wait: &Wait) {
        let since = began(wait);
        let ns = wait.until - since;
        let is_full = self.worst.len() >= self.settings.worst;
        let shortest = self.worst.peek().map_or(0, |Reverse(kept)| kept.ns);
        if self.settings.worst == 0 || is_full && ns <= shortest {
            return;
        }
        if is_full {
            self.worst.pop();
        }
        self.longest += 1;
        let wait = LongWait {
            thread: wait.thread,
            since,
            ns,
            preempted: wait.cause == Cause::Preempted,
            queue: wait.queue,
            cpu: wait.cpu,
            instead: instead(scene, wait.queue, since, wait.until),
        };
        self.worst.push(Reverse(Kept { ns, nth: self.longest, wait }));
    }
}

/// Returns the time at which a wait began: with the waking, if that is known.
fn began(wait: &Wait) -> u64 {
    wait.waking.unwrap_or(wait.queued)
}

fn instead(scene: &Scene, cpu: Cpu, since: u64, until: u64) -> Vec<(Who, u64)> {
    let mut ran: BTreeMap<Who, u64> = BTreeMap::new();
    for (who, ns) in scene.recent.during(cpu, since, until) {
        *ran.entry(who).or_default() += ns;
    }
    let mut ran: Vec<(Who, u64)> = ran.into_iter().collect();
    ran.sort_by_key(|&(who, ns)| (Reverse(ns), who));
    ran
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> std::cmp::Ordering {
        (self.ns, Reverse(self.nth)).cmp(&(other.ns, Reverse(other.nth)))
    }
}
