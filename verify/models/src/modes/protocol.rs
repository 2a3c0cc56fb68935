//! One configuration of the model, and its atomic steps.

use crate::kernel::state::{CpuNr, ThreadNr};

/// A precaution that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The transition bit has a word of its own, which is seen after that of the mode.
    TwoWords,
    /// There are no transitions: fix-ups give IDs to their new owners at once.
    NoTransit,
    /// A thread that is switched out during a transition keeps its ID.
    KeptInTransit,
    /// Fix-ups take no run-queue lock.
    Unlocked,
    /// An exit forgets that its ID may be marked as in transit.
    MarkedAtExit,
}

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    /// Number of CPUs, all of them allowed.
    pub cpus: u8,
    /// Number of threads that may exist at a time.
    pub threads: u8,
    /// Number of IDs: the possible CPUs.
    pub ids: u8,
    /// Fewer users than this make the threads owners again; none for the published rule.
    pub threshold: Option<u8>,
    /// The omitted part of the protocol.
    pub flaw: Option<Flaw>,
    /// `true` if states that differ only by the names of CPUs and threads count as one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A CPU takes its run-queue lock and goes to another thread.
    Switch(CpuNr, Option<ThreadNr>),
    /// A CPU takes the next step of its switch.
    Cpu(CpuNr),
    /// A running thread begins to create another one.
    Fork(ThreadNr, ThreadNr),
    /// A running thread begins to exit.
    Exit(ThreadNr),
    /// The change in flight goes to an owner.
    Pick(u8),
    /// The change in flight takes its next step.
    Change,
}
