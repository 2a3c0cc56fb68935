//! One configuration of the model, and its atomic steps.

use super::state::{CpuNr, Id, Op};
use crate::memory::Memory;

/// A negative control: where the protocol is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A drainer calls no membarrier.
    NoMembarrier,
    /// A drainer's membarrier is the plain one: a barrier that aborts no sections.
    PlainMembarrier,
    /// A drainer calls membarrier before it marks the word.
    MembarrierFirst,
    /// A drainer does not confirm that its mark is still there.
    NoConfirmation,
    /// A drainer marks the word by a plain store.
    PlainSeizure,
    /// A drainer releases the word before it clears the bit.
    ReleaseFirst,
    /// Drainers do not exclude each other.
    NoLock,
    /// A drainer that lost its mark to a section leaves the block alone.
    GivesUp,
    /// An activation sets the bit before it owns the word, and stores the active word at once.
    MarkFirst,
    /// An activation takes the word outside a critical section.
    Unprotected,
    /// An operation waits for the end of a seizure.
    Waits,
    /// The thief does not fence.
    UnfencedTheft,
}

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Seizure {
    /// Number of CPUs.
    pub cpus: u8,
    /// Number of threads.
    pub threads: u8,
    /// Number of IDs.
    pub ids: u8,
    /// Number of items.
    pub items: u8,
    /// Number of drainers.
    pub drainers: u8,
    /// Whether IDs move between CPUs.
    pub theft: bool,
    /// How the stores of a CPU reach the others.
    pub memory: Memory,
    /// Where the protocol is left.
    pub flaw: Option<Flaw>,
    /// Whether only the loss of an item, and an item in two places, end the search. That shows what
    /// other violations lead to.
    pub items_only: bool,
    /// Whether states that differ by the names of CPUs, IDs, items, threads and drainers count as
    /// one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A thread gets a CPU.
    Run(usize, CpuNr),
    /// A thread loses its CPU.
    Preempt(usize),
    /// A thread begins an operation.
    Begin(usize, Op),
    /// A thread takes its next step.
    Thread(usize),
    /// One of the waiting stores of a CPU becomes visible.
    Flush(CpuNr, usize),
    /// A drainer begins to drain.
    Drain(usize),
    /// A drainer takes its next step.
    Drainer(usize),
    /// A drainer chooses a block from those that are left.
    Choose(usize, Id),
    /// A drainer's membarrier reaches a CPU.
    Reach(usize, CpuNr),
    /// The thief unsets a CPU's entry.
    Steal(CpuNr, Id),
    /// The thief fences the CPU.
    Thief,
    /// The thief gives the ID to a CPU.
    Install(CpuNr, Id),
}
