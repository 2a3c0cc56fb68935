//! One configuration of the model, and its atomic steps.

use super::state::{CpuNr, ThreadNr};

/// The protocol's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Linux 6.4 to 6.12: a slot with a time stamp per CPU.
    B,
    /// Linux 6.13: b, the recent ID, and expansion before compaction.
    C,
    /// Linux 6.14 to 6.18: c, and compaction after shrink.
    D,
}

/// The way in which stores reach the other CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// At once.
    Sequential,
    /// The store of the current thread through a store buffer.
    Buffered {
        /// `true` if the switch has its full barrier.
        barrier: bool,
    },
}

/// The time that a remote agent may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stalls {
    /// Moments: no time stamp expires while an agent is at work, and a thread that scans is not
    /// preempted.
    Short,
    /// Any time, between any two of its steps.
    Long,
}

/// The work of a remote agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It migrates threads, one after the other.
    Mover,
    /// It scans.
    Scanner,
}

/// The kinds of work that are whole, of any number of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undelayed {
    /// Switches and exits.
    pub switches: bool,
    /// Migrations besides those of the agents.
    pub moves: bool,
    /// Scans besides those of the agents.
    pub scans: bool,
}

impl Undelayed {
    /// All threads takes one step at a time.
    pub const NOBODY: Self = Self { switches: false, moves: false, scans: false };
    /// All but the agents.
    pub const ALL: Self = Self { switches: true, moves: true, scans: true };
}

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// The generation.
    pub generation: Generation,
    /// Number of CPUs, all of them allowed; also the number of IDs.
    pub cpus: u8,
    /// Number of threads.
    pub threads: u8,
    /// The remote agents that take one step at a time.
    pub agents: &'static [Role],
    /// The other actors that are never interrupted.
    pub undelayed: Undelayed,
    /// `true` if scans have their second pass, which clears by the number of set bits.
    pub weighs: bool,
    /// `true` if threads exit.
    pub exits: bool,
    /// `true` if slots carry a version tag.
    pub tagged: bool,
    /// `true` if an agent tries the source's run-queue lock before its last look, and holds it
    /// until its second compare-exchange.
    pub locks_source: bool,
    /// The way in which stores reach the other CPUs.
    pub memory: Memory,
    /// The time that agents may take.
    pub stalls: Stalls,
    /// `true` if two running threads with one ID end the search. `false` shows the further
    /// consequences of such a state.
    pub sharing_ends: bool,
    /// `true` if states that differ only by the names of CPUs, threads and equal agents count as
    /// one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A CPU takes its run-queue lock and stores its new current thread.
    Switch(CpuNr, Option<ThreadNr>),
    /// The current thread of a CPU begins to exit.
    Exit(CpuNr),
    /// A CPU takes the next step of its switch.
    Cpu(CpuNr),
    /// A CPU's store buffer drains.
    Drain(CpuNr),
    /// An agent takes a CPU's run-queue lock, to move a thread there, and loads that CPU's slot.
    Move(u8, ThreadNr, CpuNr),
    /// A running thread begins a scan.
    Scan(u8, ThreadNr),
    /// A scan goes on to a CPU.
    Visit(u8, CpuNr),
    /// An agent takes its next step.
    Agent(u8),
    /// 100 ms pass.
    Elapse,
}
