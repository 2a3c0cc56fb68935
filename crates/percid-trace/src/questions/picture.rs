//! The threads that CPUs run, in as much detail as a picture can show.

use std::cmp::Reverse;
use std::collections::HashMap;

use percid_sim::run_control::RunControl;

use super::follower::{Follower, Listener, Scene};
use super::turn::{Turn, Who};
use crate::event::Tid;
use crate::overview::{Overview, Span};
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// Settings of [`picture`].
#[derive(Debug, Clone, Default)]
pub struct PictureSettings {
    /// The window to draw.
    pub window: Window,
    /// The processes to draw; all if it is empty.
    pub processes: Vec<Tid>,
    /// About how many spans of time it has at most.
    pub spans: usize,
}

/// The threads that CPUs run over time, reduced for a picture.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// Spans, sorted by CPU and time.
    pub spans: Vec<Span<ThreadNumber>>,
    /// The processes that ran, those that ran longest first.
    pub processes: Vec<ProcessRan>,
    /// The width of its columns, in nanoseconds.
    pub width_ns: u64,
    /// Start of the picture, in nanoseconds since the first event.
    pub from: u64,
    /// End of the picture.
    pub to: u64,
    /// The identities of the threads.
    pub known: Threads,
    /// `true` if the whole window was drawn.
    pub is_whole: bool,
}

/// The run time of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRan {
    /// The process; a thread whose process is not known counts as a process.
    pub process: Tid,
    /// Run time of all its threads together, in nanoseconds.
    pub run_ns: u64,
    /// Number of its threads that ran.
    pub threads: u64,
}

/// Draws what CPUs run. Adds processed events to `progress`.
pub fn picture(trace: &Trace, settings: &PictureSettings, progress: &RunControl) -> Picture {
    let mut follower = Follower::new(trace, &settings.window);
    let overview = Overview::new(settings.spans);
    let mut painter = Painter { settings, overview, ran: HashMap::new() };
    let is_whole = follower.follow(&mut painter, progress);
    let ends = trace.events.first().zip(trace.events.last());
    let length = ends.map_or(0, |(first, last)| last.time.saturating_sub(first.time));
    let known = follower.into_threads();
    Picture {
        processes: by_process(&painter.ran, &known),
        width_ns: painter.overview.width(),
        spans: painter.overview.into_spans(),
        from: settings.window.from.min(length),
        to: settings.window.to.min(length),
        known,
        is_whole,
    }
}

struct Painter<'s> {
    settings: &'s PictureSettings,
    overview: Overview<ThreadNumber>,
    /// Run time of each thread, in nanoseconds.
    ran: HashMap<ThreadNumber, u64>,
}

fn by_process(ran: &HashMap<ThreadNumber, u64>, known: &Threads) -> Vec<ProcessRan> {
    let mut sums: HashMap<Tid, ProcessRan> = HashMap::new();
    for (&thread, &ns) in ran {
        let process = known.get(thread).process_or_self();
        let none = ProcessRan { process, run_ns: 0, threads: 0 };
        let sum = sums.entry(process).or_insert(none);
        sum.run_ns += ns;
        sum.threads += 1;
    }
    let mut sums: Vec<ProcessRan> = sums.into_values().collect();
    sums.sort_by_key(|ran| (Reverse(ran.run_ns), ran.process));
    sums
}

impl Listener for Painter<'_> {
    fn turn(&mut self, scene: &Scene, turn: Turn) {
        let Who::Thread(thread) = turn.who else { return };
        let PictureSettings { window, processes, .. } = self.settings;
        let process = || scene.threads.get(thread).process_or_self();
        if processes.is_empty() || processes.contains(&process()) {
            let (from, to) = (turn.since.max(window.from), turn.until.min(window.to));
            if from < to {
                *self.ran.entry(thread).or_default() += to - from;
                self.overview.note(turn.cpu, thread, from, to);
            }
        }
    }
}
