//! What is assumed about the kernel and the surroundings of a workload. [`Setup::list`] says where
//! each number comes from.
//!
//! [`Setup::list`]: super::setup::Setup::list

use crate::time::{MS, Ns, SECOND};

/// The kernel's rules beside those of the walk, and the assumptions.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// A tick of the scheduler.
    pub tick: Ns,
    /// The period that new threads begin with.
    pub first_period: Ns,
    /// The smallest share of a CPU that a worker gets between two looks; the greatest is 1.
    pub least_share: f64,
    /// Whether periods follow the faults.
    pub adaptation: bool,
    /// Whether a worker that leaves the node it prefers begins again with the shortest period.
    pub hurry_after_move: bool,
    /// Whether a period that doubles puts off the next pass of the process too.
    pub put_off: bool,
    /// Whether a worker away from the node it prefers returns when it next traps.
    pub go_home: bool,
    /// What the main thread runs after the preparation, as a share of what a worker does.
    pub main_share: f64,
    /// File segments that can only be read.
    pub file_regions: u32,
    /// Small regions that can be written, beside the workers' stacks.
    pub data_regions: u32,
    /// The mean time after which the scheduler would move a worker to another node.
    pub stay: Ns,
    /// The share of these moves that it leaves out because the worker is on the node it prefers.
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
