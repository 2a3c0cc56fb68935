//! Options of a recording.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use crate::counters::Counter;
use crate::event::Tid;

/// The target of a recording, and its settings.
#[derive(Debug, Clone)]
pub struct Options {
    /// The target.
    pub target: Target,
    /// `true` to record only the target's own threads, even if the kernel permits to record all
    /// others beside them. That is less data, but the trace then does not contain the threads that
    /// delayed them, nor what CPUs did between their turns.
    pub only: bool,
    /// The size of the kernel's buffer for each CPU, in kilobytes. It is emptied when it is half
    /// full, and several times a second. Perf events need a power of two of pages, and take the
    /// next larger one that they are permitted.
    pub kernel_buffer_kib: u32,
    /// Additional events to record.
    pub extra: Extra,
    /// Counters that are read in each turn of a thread, at most
    /// [`MAX_COUNTERS`](crate::counters::MAX_COUNTERS), for either way of recording. Counters of
    /// all threads on all CPUs are read at every switch, which takes the right to watch the whole
    /// system (`kernel.perf_event_paranoid` at most 0, or `CAP_PERFMON`).
    pub counters: Vec<Counter>,
    /// The way of recording; `None` for the best that is permitted.
    pub backend: Option<Backend>,
    /// The maximum duration.
    pub limit: Option<Duration>,
    /// `true` if the standard output of a command goes to the standard error, so that the caller
    /// has its own standard output for itself.
    pub output_aside: bool,
}

impl Options {
    /// Everything about a target, until it ends.
    pub fn new(target: Target) -> Options {
        Options {
            target,
            only: false,
            kernel_buffer_kib: 2048,
            extra: Extra::default(),
            counters: Vec::new(),
            backend: None,
            limit: None,
            output_aside: false,
        }
    }
}

/// The subject of a recording: everything, or one process and its descendants. If it is permitted, all
/// other threads are recorded beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// All threads.
    System,
    /// A process, and the threads and processes that it creates from then on. The recording ends
    /// when it ends.
    Process(Tid),
    /// A command: a program and its arguments. It is started and recorded like a process.
    Command(Vec<OsString>),
}

/// Events that can be recorded beside switches and the begin and end of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    /// The kernel's concurrency IDs, where it has them.
    pub ids: bool,
    /// Timer ticks.
    pub ticks: bool,
    /// Wakeups.
    pub wakeups: bool,
    /// Changes of affinity. The kernel reports that a thread requested a change, but not the CPUs:
    /// these are read when the event is taken from the buffer, up to a tenth of a second later. So
    /// of several changes within that time only the last is recorded, and none of a thread that has
    /// ended by then. The kernel must trace system calls for this, which makes all system calls
    /// slightly slower.
    pub affinity: bool,
    /// Events of the kernel's NUMA balancing, with tracefs only: see [`crate::numa`]. If kernel and
    /// rights permit it, probes of the scan's functions are set during the recording. The probe of
    /// page faults makes each of them slightly slower. The regions of the scanned processes are
    /// read from `/proc` whenever they have changed, for at most a fifth of the time.
    pub numa: bool,
}

impl Default for Extra {
    fn default() -> Extra {
        Extra { ids: true, ticks: true, wakeups: true, affinity: true, numa: false }
    }
}

/// The kernel's interface for recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Its trace buffers in tracefs.
    Tracefs,
    /// `perf_event_open`.
    PerfEvents,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Tracefs => "tracefs",
            Backend::PerfEvents => "perf events",
        })
    }
}
