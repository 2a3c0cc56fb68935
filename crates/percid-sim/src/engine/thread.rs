//! A simulated thread.

use std::rc::Rc;

use super::cpu_set::CpuSet;
use crate::Ns;
use crate::policies::Thread;
use crate::topology::Cpu;
use crate::workload::MAX_DEPTH;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Sleeps, or waits for others.
    Blocked,
    /// Waits for its CPU.
    Queued,
    /// Runs on its CPU.
    Running,
    /// Ended.
    Ended,
}

/// A thread.
#[derive(Debug)]
pub(super) struct ThreadState {
    pub(super) process: u32,
    /// Its number in the process.
    pub(super) number: Thread,
    pub(super) group: u32,
    pub(super) state: State,
    /// Where it runs, or ran last.
    pub(super) cpu: Cpu,
    pub(super) affinity: Rc<CpuSet>,
    /// The operation that it does next.
    pub(super) op: u32,
    /// How often the loops around that have still to be done.
    pub(super) loops: [u32; MAX_DEPTH],
    /// What is left of an operation that was interrupted.
    pub(super) left: Ns,
    /// Whether it has been told that its turn has come.
    pub(super) has_turn: bool,
}
