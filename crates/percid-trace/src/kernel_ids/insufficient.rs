//! Reasons why the IDs in a trace cannot be compared.

use std::fmt;

use percid_sim::Ns;

use crate::event::Tid;

/// The reason why the IDs in a trace cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Insufficient {
    /// The trace does not contain the kernel's release.
    NoRelease,
    /// That kernel, by its release, has no concurrency IDs.
    NoGeneration(String),
    /// This number of events was lost.
    Lost(u64),
    /// The trace does not show that this process started its program.
    BeganBefore(Tid),
    /// The trace has no IDs of this process's threads: they were not recorded, or the process does
    /// not use restartable sequences.
    NoIds(Tid),
    /// The trace does not show whether this thread shares the memory of the one that created it.
    UnknownMemory(Tid),
    /// The events cannot have happened one after the other. At this time something else was
    /// expected.
    Inconsistent(Ns, String),
}

impl fmt::Display for Insufficient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Insufficient::NoRelease => write!(f, "the trace does not say from which kernel it is"),
            Insufficient::NoGeneration(release) => {
                write!(f, "Linux {release} has no concurrency IDs")
            }
            Insufficient::Lost(count) => write!(f, "{count} events were lost"),
            Insufficient::BeganBefore(process) => {
                write!(f, "process {process} does not start its program within the trace")
            }
            Insufficient::NoIds(process) => write!(
                f,
                "the trace has no IDs of process {process}: rseq:rseq_update was not recorded, or \
                 the process does not use restartable sequences"
            ),
            Insufficient::UnknownMemory(thread) => write!(
                f,
                "the trace does not say whether thread {thread} shares its parent's memory: \
                 task:task_newtask was not recorded"
            ),
            Insufficient::Inconsistent(time, expected) => {
                write!(f, "at {time} ns: expected {expected}")
            }
        }
    }
}

impl std::error::Error for Insufficient {}
