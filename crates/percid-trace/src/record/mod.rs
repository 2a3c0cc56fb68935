//! Records what the scheduler does, from the running kernel.
//!
//! There are two ways ([`Way`]). By tracefs the kernel tells everything that a [`Trace`] can say, but only to whom it lets
//! into that file system: the superuser, as a rule. By perf events an ordinary user may watch the commands that they
//! start, and learns less.
//!
//! | | tracefs | perf events |
//! |---|---|---|
//! | switches of the target's threads | yes | yes |
//! | what ran before and after them | yes | only when the whole system is recorded; else it is taken for idle |
//! | why a thread stopped | yes | whether it could have gone on |
//! | threads created and ended, names, programs replaced | yes | yes, but not which of two processes share memory |
//! | wakeups, migrations, ticks, the kernel's concurrency IDs | yes | no: a migration shows by the next switch |
//! | affinity at the start | yes | yes |
//! | changes of affinity | approximately, see [`Extra::affinity`] | no |
//! | CPUs that are plugged in meanwhile | yes | no |

mod command;
mod cpus;
mod perf;
mod refusal;
mod session;
mod snapshot;
mod stream;
#[cfg(test)]
mod testing;
mod tracefs;

use std::ffi::OsString;
use std::fmt;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::event::Tid;
use crate::trace::Trace;

pub(crate) use cpus::count as count_cpus;
pub use refusal::Refusal;

/// What to record, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whom.
    pub target: Target,
    /// The size of the kernel's buffer for each CPU, in kilobytes. It is emptied when it is half full, and several times a
    /// second. Perf events need a power of two of pages, and take the next larger one that they are permitted.
    pub buffer_kb: u32,
    /// What else to record.
    pub extra: Extra,
    /// By which way; `None` for the best that is permitted.
    pub way: Option<Way>,
    /// For how long, at most.
    pub limit: Option<Duration>,
    /// Whether what a command writes to its standard output goes to the standard error, so that the caller has its own
    /// for itself.
    pub output_aside: bool,
}

impl Options {
    /// Everything about a target, until it ends.
    pub fn new(target: Target) -> Options {
        Options {
            target,
            buffer_kb: 2048,
            extra: Extra::default(),
            way: None,
            limit: None,
            output_aside: false,
        }
    }
}

/// Whom to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// All threads.
    System,
    /// A process, and the threads and processes that it creates from then on. The recording ends when it ends.
    Process(Tid),
    /// A command: a program and its arguments. It is started and recorded like a process.
    Command(Vec<OsString>),
}

/// What can be recorded beside switches, and threads that begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    /// The kernel's concurrency IDs, where it has them.
    pub ids: bool,
    /// Timer ticks.
    pub ticks: bool,
    /// Wakeups.
    pub wakeups: bool,
    /// Changes of affinity. The kernel tells that a thread asked for one, not which CPUs: those are read when the event is
    /// taken from the buffer, up to a tenth of a second later. So of several changes within that time only the last
    /// is seen, and none of a thread that has ended by then. The kernel is made to trace system calls for it, which
    /// makes all system calls a little slower.
    pub affinity: bool,
}

impl Default for Extra {
    fn default() -> Extra {
        Extra { ids: true, ticks: true, wakeups: true, affinity: true }
    }
}

/// By which way the kernel tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// Its trace buffers in tracefs.
    Tracefs,
    /// `perf_event_open`.
    PerfEvents,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Tracefs => "tracefs",
            Way::PerfEvents => "perf events",
        })
    }
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The events so far.
    pub events: usize,
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
    /// How the command ended. `None` if there was none, or if it went on when the recording ended.
    pub status: Option<ExitStatus>,
    /// By which way it was recorded.
    pub way: Way,
    /// What was asked for and is not in the trace, because this kernel does not have it.
    pub without: Vec<&'static str>,
    /// Why the recording ended early, if something failed in the middle of it. The trace has what came before.
    pub broken: Option<String>,
}

/// Records until the target ends, the limit is reached, or `stop` is true. `progress` is called several times a second, and
/// `stop` looked at as often. A command that has not ended by then goes on.
///
/// All events are in memory: 32 bytes each.
///
/// # Errors
///
/// Why nothing could be recorded: see [`Refusal`]. A failure in the middle is none: see [`Recorded::broken`].
pub fn record(
    options: &Options,
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Result<Recorded, Refusal> {
    session::run(options, stop, progress)
}
