//! What a recording is, and how far it has come.

use std::process::ExitStatus;
use std::time::Duration;

use super::options::Way;
use crate::trace::Trace;

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The events so far.
    pub events: u64,
    /// How many were lost.
    pub lost: u64,
    /// For how long it has been recorded.
    pub elapsed: Duration,
}

/// A recording.
#[derive(Debug)]
pub struct Recorded {
    /// What was recorded.
    pub trace: Trace,
    /// How many switches the kernel did not tell of: see [`crate::gaps`].
    pub inferred: usize,
    /// How the command ended: see [`Ended`], as the following.
    pub status: Option<ExitStatus>,
    /// By which way it was recorded.
    pub way: Way,
    /// What was asked for and is not in the trace.
    pub without: Vec<&'static str>,
    /// Why the kernel scans nothing.
    pub no_scan: Option<String>,
    /// Why the recording ended early.
    pub broken: Option<String>,
}

/// How something was recorded, and how that ended.
#[derive(Debug)]
pub struct Ended {
    /// How the command ended. `None` if there was none, or if it went on when the recording ended.
    pub status: Option<ExitStatus>,
    /// By which way it was recorded.
    pub way: Way,
    /// What was asked for and is not in the trace, because this kernel does not have it.
    pub without: Vec<&'static str>,
    /// Why the kernel scans nothing, if NUMA balancing was asked for and is off.
    pub no_scan: Option<String>,
    /// Why the recording ended early, if something failed in the middle of it. What came before is
    /// recorded.
    pub broken: Option<String>,
}
