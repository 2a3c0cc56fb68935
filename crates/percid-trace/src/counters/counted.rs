//! Turns of threads with counter values.

use crate::event::{Cpu, Tid};

/// The most counters of a recording: processors have four to eight that count at once.
pub const MAX_COUNTERS: usize = 8;

/// A turn of a thread on a CPU, with its counter values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counted {
    /// Time at which it ended, in nanoseconds on the trace's clock. The switch in the schedule may
    /// have another time, by about a microsecond: both are taken during the same switch, one after
    /// the other.
    pub time: u64,
    /// The CPU.
    pub cpu: Cpu,
    /// The thread that ran.
    pub thread: Tid,
    /// Length of the turn, in nanoseconds.
    pub ran: u64,
    /// The part of that time, in nanoseconds, in which the processor's counters were lent to
    /// others, so that nothing was counted.
    pub uncounted: u64,
    /// Counter values, in the order of [`Origin::counters`](crate::Origin::counters). The elements
    /// after these are 0.
    pub counts: [u64; MAX_COUNTERS],
}

impl Counted {
    /// Returns the time at which the turn began.
    pub fn began(&self) -> u64 {
        self.time.saturating_sub(self.ran)
    }
}
