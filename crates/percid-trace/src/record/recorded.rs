//! The result of a recording, and its progress.

use std::process::ExitStatus;
use std::time::Duration;

use super::options::Backend;
use crate::trace::Trace;

/// Progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The events so far.
    pub events: u64,
    /// Number of lost events.
    pub lost: u64,
    /// Duration of the recording so far.
    pub elapsed: Duration,
}

/// A recording.
#[derive(Debug)]
pub struct Recorded {
    /// The recorded trace.
    pub trace: Trace,
    /// Number of switches that the kernel did not report: see [`crate::gaps`].
    pub inferred: usize,
    /// Exit status of the command: see [`Ended`], as for the following fields.
    pub status: Option<ExitStatus>,
    /// The way by which it was recorded.
    pub backend: Backend,
    /// The requested events that are not in the trace.
    pub without: Vec<&'static str>,
    /// The reason why the kernel scans nothing.
    pub no_scan: Option<String>,
    /// The reason why the recording ended early.
    pub broken: Option<String>,
}

/// Backend and end of a recording.
#[derive(Debug)]
pub struct Ended {
    /// Exit status of the command. `None` if there was none, or if it was still running when the
    /// recording ended.
    pub status: Option<ExitStatus>,
    /// The way by which it was recorded.
    pub backend: Backend,
    /// The requested events that are not in the trace, because this kernel does not have them.
    pub without: Vec<&'static str>,
    /// The reason why the kernel scans nothing, if NUMA balancing was requested and is off.
    pub no_scan: Option<String>,
    /// The reason why the recording ended early, if it failed after its beginning. The events
    /// before that are recorded.
    pub broken: Option<String>,
}
