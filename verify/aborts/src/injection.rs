//! The interruptions of a thread inside a critical section.

use percid_subject::board::Request;

/// One way to interrupt a thread at one instruction.
///
/// In the first group the thread runs into a trap at the instruction, is taken off its CPU there,
/// and the tracer does the rest. In the second it *spins* at the instruction: a jump to itself
/// keeps it running with its instruction pointer there until something from outside takes effect,
/// with no trap in the play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Injection {
    /// Taken off the CPU, then on it again: what `sched_yield` does to it.
    Stop,
    /// Off the CPU for a while.
    Sleep,
    /// A signal whose handler does the same to the same structure.
    Signal,
    /// Goes on on another CPU.
    Move,
    /// Goes on on another CPU, with a signal.
    MoveAndSignal,
    /// Another thread steals the ID at that point, uses its copy and frees it.
    StealWhileStopped,
    /// Another thread removes the contents of the structure at that point.
    VisitWhileStopped,

    /// Nothing happens except that the instruction takes long: no abort may follow.
    Delay,
    /// Another thread fences the CPU.
    Fence,
    /// Another thread takes the ID, uses its copy and frees it.
    Steal,
    /// Another thread steals the ID, uses its copy and gives it back to the CPU.
    StealAndReturn,
    /// Another thread removes the contents of the structure: it marks the copies, fences and
    /// confirms, or only reads if there is nothing to take from a section.
    Visit,
    /// Moved to another CPU while it runs.
    MoveRunning,
    /// Another thread preempts it.
    Preempt,

    /// Negative control: the ID is stolen without a fence. It must be noticed.
    StealWithoutFence,
    /// Control: the structure's contents are taken without a fence. It must be noticed.
    VisitWithoutFence,
}

impl Injection {
    /// Those that are right for any section.
    pub const GENERAL: [Injection; 9] = [
        Injection::Stop,
        Injection::Sleep,
        Injection::Signal,
        Injection::Move,
        Injection::MoveAndSignal,
        Injection::Delay,
        Injection::Fence,
        Injection::MoveRunning,
        Injection::Preempt,
    ];

    /// Those that take an ID of percid's table away.
    pub const THEFTS: [Injection; 3] =
        [Injection::StealWhileStopped, Injection::Steal, Injection::StealAndReturn];

    /// Those that come for what a structure holds.
    pub const VISITS: [Injection; 2] = [Injection::VisitWhileStopped, Injection::Visit];

    /// Those that make sense in front of a section and behind its commit.
    pub const OUTSIDE: [Injection; 3] = [Injection::Stop, Injection::Signal, Injection::Move];

    /// Returns `true` if the thread spins at the instruction; otherwise it is trapped there.
    pub fn spins(self) -> bool {
        self >= Injection::Delay
    }

    /// Returns `true` if it omits the fence that it needs.
    pub fn lacks_the_fence(self) -> bool {
        matches!(self, Injection::StealWithoutFence | Injection::VisitWithoutFence)
    }

    /// Returns `true` if it needs a second CPU.
    pub fn needs_two_cpus(self) -> bool {
        self.spins() || self.moves()
    }

    /// Returns `true` if the thread continues on another CPU.
    pub fn moves(self) -> bool {
        matches!(self, Injection::Move | Injection::MoveAndSignal | Injection::MoveRunning)
    }

    /// Returns `true` if a running thread loses its CPU, so that it may continue later.
    pub fn takes_the_cpu(self) -> bool {
        matches!(self, Injection::MoveRunning | Injection::Preempt)
    }

    /// Returns `true` if the thread's handler runs.
    pub fn signals(self) -> bool {
        matches!(self, Injection::Signal | Injection::MoveAndSignal)
    }

    /// Returns the request to the accomplice, if one is needed.
    pub fn request(self) -> Option<Request> {
        match self {
            Injection::Fence => Some(Request::Fence),
            Injection::Steal | Injection::StealWhileStopped => Some(Request::StealAndFree),
            Injection::StealAndReturn => Some(Request::StealAndReturn),
            Injection::StealWithoutFence => Some(Request::StealWithoutFence),
            Injection::Preempt => Some(Request::Preempt),
            Injection::Visit | Injection::VisitWhileStopped => Some(Request::Visit),
            Injection::VisitWithoutFence => Some(Request::VisitWithoutFence),
            _ => None,
        }
    }

    /// Returns `true` if an ID is stolen.
    pub fn steals(self) -> bool {
        use Request::{StealAndFree, StealAndReturn, StealWithoutFence};
        let request = self.request();
        matches!(request, Some(StealAndFree | StealAndReturn | StealWithoutFence))
    }
}
