//! A breach of a policy's contract.

use std::fmt;

use serde::Serialize;

use crate::policies::{Id, Thread};
use crate::time::Ns;
use crate::topology::Cpu;

/// A breach of the contract of a [`Policy`](crate::policies::Policy), which ends the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The policy's name.
    pub policy: &'static str,
    /// The simulated time, in nanoseconds.
    pub at: Ns,
    /// The CPU for which the policy was called.
    pub cpu: Cpu,
    /// The thread for which the policy was called, in the numbers of its process.
    pub thread: Thread,
    /// The broken rule.
    pub breach: Breach,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum Breach {
    /// The thread got the ID of another running thread.
    Unique {
        /// The ID.
        id: Id,
        /// The other thread.
        holder: Thread,
        /// The CPU that runs the other thread.
        holder_cpu: Cpu,
    },
    /// The ID is too large.
    Bounded {
        /// The ID.
        id: Id,
        /// The expected exclusive upper bound.
        bound: u32,
    },
    /// The thread ran without interruption and got another ID than before.
    Stable {
        /// The ID.
        id: Id,
        /// The ID before.
        before: Id,
    },
    /// The reported work is impossible.
    Work {
        /// The reported and the expected work.
        reported: String,
    },
    /// The policy returned no ID.
    Failed {
        /// The reason that the policy gave.
        why: String,
    },
}

impl Breach {
    /// Returns `true` if the other breach is of the same rule.
    pub(super) fn is_like(&self, other: &Breach) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { policy, at, cpu, thread, breach } = self;
        if matches!(breach, Breach::Failed { .. }) {
            return write!(f, "policy {policy} fails at {at} ns: {breach}");
        }
        write!(f, "policy {policy} breaks its contract at {at} ns: thread {thread} on CPU {cpu} ")?;
        breach.fmt(f)
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::Unique { id, holder, holder_cpu } => write!(
                f,
                "gets ID {id}, which thread {holder} has on CPU {holder_cpu}; expected an ID that \
                 no running thread of the process has, or a fence of CPU {holder_cpu}"
            ),
            Breach::Bounded { id, bound } => write!(
                f,
                "gets ID {id}; expected an ID below {bound}, the larger of the machine's CPUs and \
                 of the threads that the process had at a time"
            ),
            Breach::Stable { id, before } => write!(
                f,
                "gets ID {id} after ID {before}; expected ID {before} for as long as the thread \
                 runs without a fence of its CPU"
            ),
            Breach::Work { reported } => write!(f, "pays for {reported}"),
            Breach::Failed { why } => {
                write!(f, "{why}; expected an ID for every running thread")
            }
        }
    }
}
