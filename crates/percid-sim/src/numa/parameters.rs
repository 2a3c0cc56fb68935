//! Assumptions about the kernel and the environment of a workload. [`Setup::list`] has the origin
//! of each number.
//!
//! [`Setup::list`]: super::setup::Setup::list

use crate::time::{MS, Ns, SECOND};

/// The kernel's rules apart from those of the scan, and the assumptions.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Length of a scheduler tick.
    pub tick: Ns,
    /// Initial period of new threads.
    pub first_period: Ns,
    /// Minimum share of a CPU that a worker gets between two checks; the maximum is 1.
    pub least_share: f64,
    /// `true` if periods adapt to the faults.
    pub adaptation: bool,
    /// `true` if a worker that leaves its preferred node restarts with the shortest period.
    pub hurry_after_move: bool,
    /// `true` if a period that doubles also delays the next pass of the process.
    pub put_off: bool,
    /// `true` if a worker away from its preferred node returns when it next traps.
    pub go_home: bool,
    /// CPU share of the main thread after the preparation, relative to a worker with its own CPU.
    pub main_share: f64,
    /// Number of read-only file segments.
    pub file_regions: u32,
    /// Number of small writable regions, apart from the workers' stacks.
    pub data_regions: u32,
    /// Mean time after which the scheduler would move a worker to another node.
    pub stay: Ns,
    /// Share of these moves that the scheduler omits because the worker is on its preferred node.
    pub reluctance: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            tick: 4 * MS,
            first_period: 1000 * MS,
            least_share: 0.887,
            adaptation: true,
            hurry_after_move: true,
            put_off: false,
            go_home: true,
            main_share: 0.95,
            file_regions: 14,
            data_regions: 9,
            stay: 350 * SECOND,
            reluctance: 0.0,
        }
    }
}
