//! Progress of the intermittent benchmark.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;

use crate::busy::Watch;
use crate::deadline::Deadline;
use crate::judged::Circumstances;

/// Progress of the whole measurement.
#[derive(Debug)]
pub(super) struct Meter {
    deadline: Deadline,
    progress: Progress,
    interrupt: Interrupt,
    watch: Mutex<Watch>,
    /// Number of processes that currently compete.
    competitors: AtomicU32,
    was_overdue: AtomicBool,
    /// `true` if a warm-up had fewer bursts than requested.
    was_cut_short: AtomicBool,
}

impl Meter {
    pub(super) fn new(expected: Duration, rows: usize, interrupt: &Interrupt) -> Self {
        Meter {
            deadline: Deadline::new(expected, rows),
            progress: Progress::new("bench intermittent", expected),
            interrupt: interrupt.clone(),
            watch: Mutex::new(Watch::start()),
            competitors: AtomicU32::new(0),
            was_overdue: AtomicBool::new(false),
            was_cut_short: AtomicBool::new(false),
        }
    }

    /// Reports the progress after a turn.
    pub(super) fn tick(&self) {
        let (share, left) = self.deadline.progress();
        self.progress.at(share, left);
        self.watch().look(self.competitors.load(Relaxed));
    }

    /// Sleeps between two turns; Ctrl-C ends the sleep.
    pub(super) fn sleep(&self, pause: Duration) {
        self.interrupt.sleep(pause);
    }

    pub(super) fn compete(&self, competitors: u32) {
        self.competitors.store(competitors, Relaxed);
    }

    /// Returns `true` if no further burst may begin.
    pub(super) fn is_over(&self) -> bool {
        if self.deadline.is_overdue() {
            self.was_overdue.store(true, Relaxed);
        }
        self.was_overdue.load(Relaxed) || self.interrupt.pressed()
    }

    /// Returns `true` if a warm-up that has run until this deadline is long enough.
    pub(super) fn is_warm(&self, warm_up: &Deadline) -> bool {
        let is_cut_short = warm_up.is_overdue();
        if is_cut_short {
            self.was_cut_short.store(true, Relaxed);
        }
        is_cut_short || self.is_over()
    }

    pub(super) fn circumstances(&self) -> Circumstances {
        let partial = self.was_overdue.load(Relaxed) || self.was_cut_short.load(Relaxed);
        Circumstances { noise: self.watch().noise(), partial }
    }

    fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
