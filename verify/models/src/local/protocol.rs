//! One configuration of the model, and its atomic steps.

use super::state::{CpuNr, Id, Lock};
use crate::memory::Memory;

/// How threads take a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taking {
    /// By a critical section that stores.
    Section,
    /// By an exchange, between two looks.
    Exchange,
}

/// A negative control: where the protocol is left. In a few places that is harmless, and the
/// catalogue says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A visitor calls no membarrier.
    NoMembarrier,
    /// A visitor's membarrier is the plain one: a barrier that aborts no sections.
    PlainMembarrier,
    /// A visitor calls membarrier before it closes the shard.
    MembarrierFirst,
    /// A visitor does not close the shard.
    NoClosing,
    /// A visitor is content with finding the lock free.
    NoExchange,
    /// A visitor opens the shard before it gives the lock back.
    OpenFirst,
    /// Both of these.
    OpenFirstNoExchange,
    /// A visitor clears the bit after it has opened the shard.
    ClearLast,
    /// A visitor leaves a shard alone that a thread holds.
    SkipsHeld,
    /// Visitors take no turns.
    NoTurns,
    /// A section loads the lock before it looks whether the shard is closed.
    StateFirst,
    /// A thread exchanges without looking first.
    NoFirstLook,
    /// A thread does not look again after the exchange.
    NoSecondLook,
    /// A thread waits until the shard is open.
    Waits,
    /// The thief does not fence.
    UnfencedTheft,
}

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Local {
    /// How threads take a lock.
    pub taking: Taking,
    /// Number of CPUs.
    pub cpus: u8,
    /// Number of threads.
    pub threads: u8,
    /// Number of IDs. Without sections: one.
    pub ids: u8,
    /// Number of visitors.
    pub visitors: u8,
    /// Whether IDs move between CPUs.
    pub theft: bool,
    /// How the stores of a CPU reach the others.
    pub memory: Memory,
    /// Where the protocol is left.
    pub flaw: Option<Flaw>,
    /// Whether only exclusion and the fate of values end the search. That shows what other
    /// violations lead to.
    pub values_only: bool,
    /// Whether states that differ by the names of CPUs, IDs, threads and visitors count as one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A thread gets a CPU.
    Run(usize, CpuNr),
    /// A thread loses its CPU.
    Preempt(usize),
    /// A thread begins to take a lock that is as it expects.
    Begin(usize, Lock),
    /// A thread takes its next step.
    Thread(usize),
    /// A thread cannot make a value.
    Fail(usize),
    /// One of the waiting stores of a CPU becomes visible.
    Flush(CpuNr, usize),
    /// A visitor begins to visit, or to drain.
    Visit(usize, bool),
    /// A visitor takes its next step.
    Visitor(usize),
    /// A visitor chooses a shard from those that are left.
    Choose(usize, Id),
    /// A visitor's membarrier reaches a CPU.
    Reach(usize, CpuNr),
    /// The thief unsets a CPU's entry.
    Steal(CpuNr, Id),
    /// The thief fences the CPU.
    Thief,
    /// The thief gives the ID to a CPU.
    Install(CpuNr, Id),
}
