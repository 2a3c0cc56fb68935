//! One configuration of the model, and its atomic steps.

use super::state::{CpuNr, Id};
use super::theft::Order;

/// The way in which the slow path takes its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// The protocol: it is tried once; a thread that does not get it uses the shared slot.
    Try,
    /// Negative control: a thread that does not get it waits.
    Wait,
}

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Number of CPUs.
    pub cpus: u8,
    /// Number of threads.
    pub threads: u8,
    /// Number of IDs.
    pub ids: u8,
    /// Number of remote agents.
    pub agents: u8,
    /// Number of threads that get signals.
    pub handlers: u8,
    /// `true` if threads exit.
    pub exits: bool,
    /// The order of the steps of a theft.
    pub order: Order,
    /// The way in which the slow path takes its lock.
    pub lock: Lock,
    /// `true` if the slow path blocks signals.
    pub blocks_signals: bool,
    /// `true` if the CPU number is read inside the critical section; otherwise it is not compared
    /// inside either.
    pub cpu_inside: bool,
    /// `true` if every state is checked for threads that wait for others.
    pub checks_solo: bool,
    /// `true` if states that differ only by the names of CPUs, IDs, threads and agents count as
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
    /// A signal interrupts a thread.
    Signal(usize),
    /// A thread exits.
    Exit(usize),
    /// A thread takes its next step.
    Thread(usize),
    /// A thread in the slow path takes a free ID for a CPU.
    TakeFree(usize, CpuNr, Id),
    /// A thread in the slow path steals for a CPU from another one.
    Steal(usize, CpuNr, CpuNr),
    /// An agent gets the lock.
    AgentLock(usize),
    /// An agent chooses a victim, and the CPU that gets the ID (none: it is freed).
    AgentSteal(usize, CpuNr, Option<CpuNr>),
    /// The kernel refuses the fence to a thread in the slow path.
    Refuse(usize),
    /// An agent takes its next step.
    Agent(usize),
    /// The kernel refuses the fence to an agent.
    AgentRefuse(usize),
    /// An agent that evicts stores UNSET into the entry of one CPU more.
    AgentUnset(usize, CpuNr),
    /// An agent that evicts: the fence reaches a CPU.
    AgentFence(usize, CpuNr),
}
