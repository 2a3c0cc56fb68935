//! A breach of a mask policy's contract.

use std::fmt;

use serde::Serialize;

use super::policy::{Cycles, Join};
use super::ready::{Space, Thread};
use crate::topology::Cpu;

/// A breach of the contract of a [`BitPolicy`](super::BitPolicy), which ends the simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MaskViolation {
    /// The policy's name.
    pub policy: String,
    /// The simulated time, in cycles.
    pub at: Cycles,
    /// The CPU whose bit is clear.
    pub cpu: Cpu,
    /// The thread that it runs, in the numbers of all address spaces.
    pub thread: Thread,
    /// The address space of the thread.
    pub space: Space,
    /// The step that left the bit clear.
    pub step: MaskStep,
}

/// A step that decides about a CPU's bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskStep {
    /// A switch to a thread.
    Switch {
        /// `true` if the page tables of another address space were loaded.
        across: bool,
    },
    /// An interrupt by a flush.
    Interrupt,
}

impl MaskStep {
    /// Returns the step that left the bit clear, if `join` is the handling at the last switch.
    pub(super) fn of(across: bool, join: Join) -> MaskStep {
        match join {
            Join::Keep => MaskStep::Switch { across },
            Join::Set | Join::Test => MaskStep::Interrupt,
        }
    }
}

impl std::error::Error for MaskViolation {}

impl fmt::Display for MaskViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MaskViolation { policy, at, cpu, thread, space, step } = self;
        write!(
            f,
            "mask policy {policy} breaks its contract at {at} cycles: CPU {cpu} runs thread \
             {thread} of address space {space} and its bit is clear, after {step}; expected a set \
             bit while the CPU runs a thread of the address space"
        )
    }
}

impl fmt::Display for MaskStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MaskStep::Switch { across: true } => {
                "a switch from another address space that kept the bit as it was"
            }
            MaskStep::Switch { across: false } => {
                "a switch within the address space that kept the bit as it was"
            }
            MaskStep::Interrupt => "an interrupt by a flush",
        })
    }
}
