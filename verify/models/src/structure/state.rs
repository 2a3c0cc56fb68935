//! The global state of a structure.

use super::Protocol;
use crate::memory::Buffer;

/// A concurrency ID, and the number of its memory.
pub type Id = u8;
/// A CPU number.
pub type CpuNr = u8;
/// A set of IDs, CPUs or items, one bit each.
pub type Set = u8;

/// CPUs in the largest configuration.
pub const CPUS: usize = 2;
/// Threads in the largest configuration.
pub const THREADS: usize = 3;
/// IDs in the largest configuration.
pub const IDS: usize = 2;
/// Visitors in the largest configuration.
pub const VISITORS: usize = 2;
/// Stores of a CPU that wait in its buffer.
pub const WAITING: usize = 3;

/// An operation in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work<P: Protocol> {
    /// The operation.
    pub op: P::Op,
    /// The next step.
    pub at: P::At,
}

/// A thread, which works forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread<P: Protocol> {
    /// The CPU that it runs on; none while it is preempted.
    pub on: Option<CpuNr>,
    /// The operation in progress.
    pub work: Option<Work<P>>,
    /// `true` if it has taken what a visitor waits for, since that visitor waits.
    pub overtook: bool,
}

/// The next step of a thread that runs.
#[derive(Debug, Clone, Copy)]
pub struct Due<P: Protocol> {
    /// The thread.
    pub nr: usize,
    /// The CPU on which it runs.
    pub cpu: CpuNr,
    /// The operation, and the step.
    pub work: Work<P>,
}

/// An ID being visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hold<P: Protocol> {
    /// The ID.
    pub id: Id,
    /// The next step.
    pub step: P::Step,
    /// State of the visit.
    pub known: P::Known,
    /// The CPUs that membarrier has reached.
    pub reached: Set,
}

/// The next atomic step of a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Visit<P: Protocol> {
    /// Nothing in progress.
    Idle,
    /// Wait for the turn.
    Turn,
    /// Load the mask.
    Mask,
    /// Choose an ID from those that are left.
    Choose,
    /// Visit an ID.
    At(Hold<P>),
    /// End the turn.
    End,
}

/// A thread that visits or drains all. It does not matter where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Visitor<P: Protocol> {
    /// The next step.
    pub at: Visit<P>,
    /// `true` if it takes out what it finds.
    pub drains: bool,
    /// The IDs that are left.
    pub left: Set,
    /// Items that it must have had when it ends.
    pub owed: Set,
}

impl<P: Protocol> Visitor<P> {
    /// Nothing in progress.
    pub const IDLE: Self = Self { at: Visit::Idle, drains: false, left: 0, owed: 0 };
}

/// An agent that moves IDs from CPU to CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Thief {
    /// Nothing in flight.
    Idle,
    /// The CPU's entry is unset: fence it.
    Fence(CpuNr, Id),
    /// Store the ID into an entry that is unset.
    Install(Id),
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State<P: Protocol> {
    /// CPU to ID.
    pub table: [Option<Id>; CPUS],
    /// The memory of the IDs.
    pub data: P::Data,
    /// The CPUs' store buffers.
    pub buffers: [Buffer<P::Write, WAITING>; CPUS],
    /// The mask: IDs whose memory may have something in it.
    pub mask: Set,
    /// `true` if it is some visitor's turn.
    pub turn: bool,
    /// The threads.
    pub threads: [Thread<P>; THREADS],
    /// The visitors.
    pub visitors: [Visitor<P>; VISITORS],
    /// The thread that moves IDs.
    pub thief: Thief,
    /// The rule that a step broke by itself, if any.
    pub fault: Option<P::Fault>,
}
