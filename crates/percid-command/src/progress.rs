//! Progress on stderr for work of more than two seconds.
//!
//! This module has no thread or timer. A measurement reports between two batches, so that reporting
//! never runs *during* one.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Minimum duration of work that reports its progress.
pub const WORTH_TELLING: Duration = Duration::from_secs(2);
/// Intervals between two reports: the line of a terminal is redrawn in place; a log gets few lines.
const REDRAW: Duration = Duration::from_millis(200);
const LOG_EVERY: Duration = Duration::from_secs(5);

/// The progress of one piece of work.
#[derive(Debug)]
pub struct Progress {
    label: String,
    /// Time of the last report. `None` for work that is too short to report.
    last: Option<Mutex<Option<Instant>>>,
    terminal: bool,
}

impl Progress {
    /// Creates the progress of work that is named `label` and takes about `expected`. Work shorter
    /// than [`WORTH_TELLING`] reports nothing.
    pub fn new(label: impl Into<String>, expected: Duration) -> Self {
        Progress {
            label: label.into(),
            last: (expected > WORTH_TELLING).then(|| Mutex::new(None)),
            terminal: io::stderr().is_terminal(),
        }
    }

    /// Prints that `fraction` (0 to 1) is done and about `left` remains, unless it printed a moment
    /// ago.
    pub fn at(&self, fraction: f64, left: Duration) {
        let percent = (fraction.clamp(0.0, 1.0) * 100.0) as u32;
        let left = left.as_secs_f64().ceil();
        self.tell(|| format!("{percent:3} %, about {left} s left"));
    }

    /// Prints the elapsed time, unless it printed a moment ago: for work of unknown length.
    pub fn after(&self, elapsed: Duration) {
        self.tell(|| format!("{} s so far", elapsed.as_secs()));
    }

    fn tell(&self, state: impl FnOnce() -> String) {
        let Some(last) = &self.last else { return };
        let mut last = last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let pause = if self.terminal { REDRAW } else { LOG_EVERY };
        if last.is_none_or(|at| at.elapsed() >= pause) {
            *last = Some(Instant::now());
            let (start, end) = if self.terminal { ("\r", "\x1b[K") } else { ("", "\n") };
            // A closed or full stderr is no reason to stop the measurement.
            let _ = write!(io::stderr(), "{start}percid: {}: {}{end}", self.label, state());
        }
    }
}

impl Drop for Progress {
    /// Clears a terminal's line for the following output.
    fn drop(&mut self) {
        if self.terminal && self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
