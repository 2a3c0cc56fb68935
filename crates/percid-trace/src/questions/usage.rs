//! Usage of CPUs over time, and when they idle while a thread waits for another CPU.

use std::collections::{HashMap, HashSet};

use percid_sim::run_control::RunControl;

use super::bound::bound;
use super::follower::{Follower, Listener, Scene};
use super::turn::{Stay, Turn, Who};
use crate::event::{Cpu, Tid};
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// Settings of [`usage`].
#[derive(Debug, Clone, Default)]
pub struct UsageSettings {
    /// The window to analyse.
    pub window: Window,
    /// The processes whose threads are reported; all if it is empty. The usage of CPUs always
    /// includes all processes.
    pub processes: Vec<Tid>,
    /// Number of slices into which the window is divided, at least one.
    pub slices: u32,
}

/// The result of [`usage`].
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Start of the first slice, in nanoseconds since the first event.
    pub from: u64,
    /// End of the last slice.
    pub to: u64,
    /// The length of a slice; the last one may be shorter.
    pub slice_ns: u64,
    /// Usage of each CPU, by its number.
    pub cpus: Vec<CpuUsage>,
    /// Run time of each thread on each CPU in each slice, sorted in this order; cells of 0 are left
    /// out.
    pub cells: Vec<Cell>,
    /// The identities of the threads.
    pub known: Threads,
    /// `true` if the whole window was analysed.
    pub is_whole: bool,
}

/// Usage of one CPU in each slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// Usage by slice.
    pub slices: Vec<SliceUsage>,
    /// The idle time in which most was lost: when it began, and how much of it, in nanoseconds.
    pub worst: Option<(u64, u64)>,
}

/// Usage of one CPU in one slice, in nanoseconds. The rest of the slice is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SliceUsage {
    /// It ran threads.
    pub busy_ns: u64,
    /// It ran none.
    pub idle_ns: u64,
    /// The part of `idle_ns` during which a thread that is not bound to one CPU was in the queue of
    /// another CPU that ran something else.
    pub idle_while_waiting_ns: u64,
}

/// Run time of a thread on a CPU in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The thread.
    pub thread: ThreadNumber,
    /// The CPU.
    pub cpu: Cpu,
    /// The slice.
    pub slice: u32,
    /// Run time, in nanoseconds.
    pub ns: u64,
}

/// Finds out what CPUs do. Adds processed events to `progress`.
pub fn usage(trace: &Trace, settings: &UsageSettings, progress: &RunControl) -> Usage {
    let mut follower = Follower::new(trace, &settings.window);
    let mut watch = Watch::new(trace, settings);
    let is_whole = follower.follow(&mut watch, progress);
    let (from, to, slice_ns) = (watch.from, watch.to, watch.slice_ns);
    let cell = |((thread, cpu, slice), ns)| Cell { thread, cpu, slice, ns };
    let mut cells: Vec<Cell> = watch.cells.into_iter().map(cell).collect();
    cells.sort_unstable();
    let cpus = watch.cpus.into_iter().map(|state| state.usage).collect();
    Usage { from, to, slice_ns, cpus, cells, known: follower.into_threads(), is_whole }
}

struct Watch<'s> {
    settings: &'s UsageSettings,
    from: u64,
    to: u64,
    slice_ns: u64,
    cpus: Vec<CpuState>,
    cells: HashMap<(ThreadNumber, Cpu, u32), u64>,
    bound: HashSet<Tid>,
    lost: Lost,
}

#[derive(Default, Clone)]
struct CpuState {
    usage: CpuUsage,
    /// Threads in its queue that might run elsewhere.
    waiting: u32,
    runs_thread: bool,
    /// Value of `Lost` when its current turn began.
    lost_before: u64,
}

/// Time, since the recording began, in which any CPU had a queue while it ran something.
#[derive(Default)]
struct Lost {
    /// Number of CPUs that run something and have a queue now.
    crowded: u32,
    ns: u64,
    now: u64,
    /// The value at the beginning of each slice that has begun.
    at_slices: Vec<u64>,
}

impl Lost {
    /// Lets time pass. Slices begin at `from` and then each `slice_ns`.
    fn advance(&mut self, now: u64, from: u64, slice_ns: u64, slices: usize) {
        while self.at_slices.len() < slices {
            let begin = from.saturating_add(slice_ns.saturating_mul(self.at_slices.len() as u64));
            if begin > now {
                break;
            }
            self.pass(begin);
            self.at_slices.push(self.ns);
        }
        self.pass(now);
    }

    fn pass(&mut self, now: u64) {
        if self.crowded > 0 {
            self.ns += now.saturating_sub(self.now);
        }
        self.now = self.now.max(now);
    }
}

impl<'s> Watch<'s> {
    fn new(trace: &Trace, settings: &'s UsageSettings) -> Watch<'s> {
        let ends = trace.events.first().zip(trace.events.last());
        let length = ends.map_or(0, |(first, last)| last.time.saturating_sub(first.time));
        let (from, to) = (settings.window.from.min(length), settings.window.to.min(length));
        let slices = settings.slices.max(1);
        let slice_ns = to.saturating_sub(from).div_ceil(u64::from(slices)).max(1);
        let usage = CpuUsage { slices: vec![SliceUsage::default(); slices as usize], worst: None };
        let cpu = CpuState { usage, ..CpuState::default() };
        let cpus = trace.largest_cpu().map_or(0, |cpu| cpu as usize + 1);
        Watch {
            settings,
            from,
            to,
            slice_ns,
            cpus: vec![cpu; cpus],
            cells: HashMap::new(),
            bound: bound(trace),
            lost: Lost::default(),
        }
    }

    /// A CPU's queue or what it runs is about to change.
    fn change(&mut self, now: u64, cpu: Cpu, change: impl FnOnce(&mut CpuState)) {
        self.lost.advance(now, self.from, self.slice_ns, self.settings.slices.max(1) as usize);
        let Some(state) = self.cpus.get_mut(cpu as usize) else { return };
        let is_crowded = |state: &CpuState| state.runs_thread && state.waiting > 0;
        let before = is_crowded(state);
        change(state);
        match (before, is_crowded(state)) {
            (false, true) => self.lost.crowded += 1,
            (true, false) => self.lost.crowded -= 1,
            _ => {}
        }
    }

    fn count(&mut self, scene: &Scene, turn: Turn, slice: u32, part: Part) {
        let state = &mut self.cpus[turn.cpu as usize];
        let Some(usage) = state.usage.slices.get_mut(slice as usize) else { return };
        match turn.who {
            Who::Idle => {
                usage.idle_ns += part.ns;
                usage.idle_while_waiting_ns += part.lost_ns;
            }
            Who::Thread(thread) => {
                usage.busy_ns += part.ns;
                let processes = &self.settings.processes;
                let process = || scene.threads.get(thread).process_or_self();
                if processes.is_empty() || processes.contains(&process()) {
                    *self.cells.entry((thread, turn.cpu, slice)).or_default() += part.ns;
                }
            }
            Who::Unknown => {}
        }
    }
}

/// The part of a turn that is in a slice.
struct Part {
    ns: u64,
    /// The part of it in which any CPU had a queue while it ran something.
    lost_ns: u64,
}

impl Listener for Watch<'_> {
    fn turn(&mut self, scene: &Scene, turn: Turn) {
        let Turn { cpu, since, until, .. } = turn;
        self.change(until, cpu, |_| {});
        let (begin, end) = (since.max(self.from), until.min(self.to));
        if begin >= end || cpu as usize >= self.cpus.len() {
            return;
        }
        let slice_of = |time: u64| ((time - self.from) / self.slice_ns) as u32;
        let (first, last) = (slice_of(begin), slice_of(end - 1));
        let mut lost = match self.lost.at_slices.first() {
            Some(&at_first) if since < self.from => at_first,
            _ => self.cpus[cpu as usize].lost_before,
        };
        let before = lost;
        for slice in first..=last {
            let starts = self.from + self.slice_ns * u64::from(slice);
            let ends = starts.saturating_add(self.slice_ns);
            let lost_then = match slice == last {
                true => self.lost.ns,
                false => self.lost.at_slices.get(slice as usize + 1).copied().unwrap_or(lost),
            };
            let ns = end.min(ends) - begin.max(starts);
            let part = Part { ns, lost_ns: lost_then.saturating_sub(lost).min(ns) };
            self.count(scene, turn, slice, part);
            lost = lost_then;
        }
        let ns = lost.saturating_sub(before);
        let worst = &mut self.cpus[cpu as usize].usage.worst;
        if turn.who == Who::Idle && ns > worst.map_or(0, |(_, ns)| ns) {
            *worst = Some((begin, ns));
        }
    }

    fn begin(&mut self, _: &Scene, now: u64, cpu: Cpu, who: Who) {
        self.change(now, cpu, |state| state.runs_thread = matches!(who, Who::Thread(_)));
        let lost = self.lost.ns;
        if let Some(state) = self.cpus.get_mut(cpu as usize) {
            state.lost_before = lost;
        }
    }

    fn enqueue(&mut self, scene: &Scene, now: u64, thread: ThreadNumber, cpu: Cpu) {
        if !self.bound.contains(&scene.threads.get(thread).tid) {
            self.change(now, cpu, |state| state.waiting += 1);
        }
    }

    fn dequeue(&mut self, scene: &Scene, stay: Stay) {
        if !self.bound.contains(&scene.threads.get(stay.thread).tid) {
            self.change(stay.until, stay.cpu, |state| {
                state.waiting = state.waiting.saturating_sub(1);
            });
        }
    }
}
