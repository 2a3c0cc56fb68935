//! A simulated thread.

use std::rc::Rc;

use super::index::ProcessIndex;
use super::queue::Ticket;
use crate::caches::Seen;
use crate::cpu_set::CpuSet;
use crate::policies::Thread;
use crate::time::Ns;
use crate::topology::Cpu;
use crate::workload::{GroupIndex, MAX_DEPTH};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Sleeps, or waits for others.
    Blocked,
    /// Waits for its CPU.
    Queued,
    /// Waits until its CPU is not throttled any more.
    Parked,
    /// Runs on its CPU.
    Running,
    /// Ended.
    Ended,
}

/// Where a thread is in the round of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It takes no turns, or not yet.
    Outside,
    /// It is in the round, and does something else.
    Inside,
    /// It waits for its turn, which is to come `after` the one before, and up to `jitter` later.
    Awaited { after: Ns, jitter: Ns },
    /// Its turn will have come when it wakes.
    Offered,
}

/// A thread. What most events look at fills the first cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ThreadState {
    pub(super) process: ProcessIndex,
    /// Its number in the process.
    pub(super) number: Thread,
    pub(super) group: GroupIndex,
    /// The operation that it does next.
    pub(super) op: u32,
    /// How often the loops around that have still to be done.
    pub(super) loops: [u32; MAX_DEPTH],
    /// Where it runs, or ran last.
    pub(super) cpu: Cpu,
    pub(super) state: State,
    /// What is left of an operation that was interrupted.
    pub(super) left: Ns,
    /// How much of its own data the operation goes through that it does, in bytes.
    pub(super) data: u64,
    /// Where and when it went through it last.
    pub(super) data_seen: Option<Seen>,
    pub(super) affinity: Rc<CpuSet>,
    /// The event that wakes it. Earlier ones are void.
    pub(super) alarm: Option<Ticket>,
    /// Where it is in the round of turns.
    pub(super) turn: Turn,
}

impl ThreadState {
    /// A thread that is created on a CPU and blocks until it begins.
    pub(super) fn new(
        process: ProcessIndex,
        number: Thread,
        group: GroupIndex,
        cpu: Cpu,
        affinity: Rc<CpuSet>,
    ) -> ThreadState {
        ThreadState {
            process,
            number,
            group,
            state: State::Blocked,
            cpu,
            affinity,
            op: 0,
            loops: [0; MAX_DEPTH],
            left: 0,
            data: 0,
            data_seen: None,
            alarm: None,
            turn: Turn::Outside,
        }
    }

    /// Whether it has never run.
    pub(super) fn is_new(&self) -> bool {
        self.op == 0
    }
}
