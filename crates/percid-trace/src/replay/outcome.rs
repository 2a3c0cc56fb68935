//! The result of a replay.

use percid_sim::Ns;
use percid_sim::policies::{Id, Impossible, Thread};
use percid_sim::topology::Cpu;

use super::space::{SpaceNumber, SpaceSummary};
use super::tally::{LastUse, Tally};
use crate::event::Tid;
use crate::overview::Span;

/// A schedule under a policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replay {
    /// The address spaces in the order in which the trace shows them. Without those that are not
    /// wanted, and those whose threads never ran.
    pub spaces: Vec<SpaceReplay>,
    /// Address spaces that were replayed and not kept.
    pub spaces_left_out: u64,
    /// Address spaces that were not replayed, because too many lived at once: see
    /// [`Settings::policy_bytes`](super::Settings::policy_bytes).
    pub spaces_refused: u64,
    /// Address spaces in which the policy could not go on.
    pub spaces_stuck: u64,
    /// Time from the first event to the last, in nanoseconds.
    pub duration_ns: Ns,
    /// `true` if the whole trace was replayed, and not only its beginning.
    pub is_whole: bool,
    /// The first turns, in the order in which they ended.
    pub turns: Vec<Turn>,
    /// Turns that were not kept.
    pub turns_left_out: u64,
    /// All turns, as far as a picture can show them, by CPU and time.
    pub drawn: Vec<Span<Used>>,
    /// The width of that picture's columns, in nanoseconds.
    pub width_drawn: Ns,
}

/// A thread that used an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Used {
    /// The address space.
    pub space: SpaceNumber,
    /// The thread, by the kernel's number.
    pub tid: Tid,
    /// The ID.
    pub id: Id,
}

/// One address space under a policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpaceReplay {
    /// Its number; the same under all policies.
    pub number: SpaceNumber,
    /// The figures that are the same under all policies.
    pub summary: SpaceSummary,
    /// The figures of this policy; of the beginning, if it could not go on.
    pub tally: Tally,
    /// The event at which the policy could not go on, if any.
    pub stuck: Option<PolicyFailure>,
}

/// A policy could not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyFailure {
    /// Time, in nanoseconds since the first event.
    pub at: Ns,
    /// The reason.
    pub why: Impossible,
}

/// A thread used an ID on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The address space.
    pub space: SpaceNumber,
    /// Its process.
    pub process: Tid,
    /// The thread, by its number in that space.
    pub thread: Thread,
    /// The same by the kernel's number.
    pub tid: Tid,
    /// The CPU.
    pub cpu: Cpu,
    /// The ID.
    pub id: Id,
    /// Start time, in nanoseconds since the first event.
    pub from: Ns,
    /// End time.
    pub to: Ns,
    /// The use of the ID before.
    pub last: Option<LastUse>,
    /// `true` if the ID was stolen from another CPU for this turn.
    pub stolen: bool,
}
