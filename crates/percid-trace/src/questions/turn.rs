//! Turns of CPUs and waits of threads. Times are nanoseconds since the first event.

use crate::event::Cpu;
use crate::threads::ThreadNumber;

/// The occupant of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// A thread.
    Thread(ThreadNumber),
    /// Nothing.
    Idle,
    /// The recording does not contain it.
    Unknown,
}

/// A CPU runs something from one time to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) who: Who,
    pub(super) cpu: Cpu,
    pub(super) since: u64,
    pub(super) until: u64,
}

/// The reason why a thread waits for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It was woken, or is new.
    Woken,
    /// It was preempted, or yielded, though it could have gone on.
    Preempted,
}

/// A thread waited for a CPU, and runs. Both ends were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) thread: ThreadNumber,
    pub(super) cause: Cause,
    /// Time at which another thread began to wake it, if that was recorded.
    pub(super) waking: Option<u64>,
    /// Time at which it was ready; if that was not recorded, when another thread began to wake it.
    pub(super) queued: u64,
    pub(super) until: u64,
    /// The CPU in whose queue it was last.
    pub(super) queue: Cpu,
    /// The CPU that runs it.
    pub(super) cpu: Cpu,
}

/// An interval that a thread spent in the queue of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) thread: ThreadNumber,
    pub(super) cpu: Cpu,
    pub(super) since: u64,
    pub(super) until: u64,
}
