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

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunState {
    /// It sleeps, or waits for other threads.
    Blocked,
    /// It waits for its CPU.
    Queued,
    /// It waits until its CPU is no longer throttled.
    Parked,
    /// It runs on its CPU.
    Running,
    /// It has ended.
    Ended,
}

/// The state of a thread in the round of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It takes no turns, or has not requested one yet.
    Outside,
    /// It is in the round, and does something else.
    Inside,
    /// It waits for its turn, which begins `after` to `after + jitter` after the previous one.
    Awaited { after: Ns, jitter: Ns },
    /// It will have its turn when it wakes.
    Offered,
}

/// A thread. The fields that most events use fill the first cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ThreadState {
    pub(super) process: ProcessIndex,
    /// Number of the thread in the process.
    pub(super) number: Thread,
    pub(super) group: GroupIndex,
    /// Index of the next operation.
    pub(super) op: u32,
    /// Remaining iterations of the surrounding loops.
    pub(super) loops: [u32; MAX_DEPTH],
    /// The CPU that runs the thread, or ran it last.
    pub(super) cpu: Cpu,
    pub(super) state: RunState,
    /// Remaining time of an interrupted operation.
    pub(super) left: Ns,
    /// Bytes of its own data that the current operation goes through.
    pub(super) data: u64,
    /// State of the caches when it last went through the data.
    pub(super) data_seen: Option<Seen>,
    pub(super) affinity: Rc<CpuSet>,
    /// The event that wakes it. Earlier ones are void.
    pub(super) alarm: Option<Ticket>,
    /// State in the round of turns.
    pub(super) turn: Turn,
}

impl ThreadState {
    /// Creates a thread on a CPU; it is blocked until it begins.
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
            state: RunState::Blocked,
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

    /// Returns `true` if it has never run.
    pub(super) fn is_new(&self) -> bool {
        self.op == 0
    }
}
