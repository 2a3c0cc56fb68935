//! The global state of the rules model.

use crate::kernel::state::{CpuNr, Fault, Id, Slot, Then};

/// CPUs in the largest configuration.
pub const CPUS: usize = 3;
/// Remote agents in the largest configuration.
pub const AGENTS: usize = 3;

/// A CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cpu {
    /// `true` if this CPU has made a thread of the process current.
    pub current: bool,
    /// `true` if other CPUs observe that.
    pub seen: bool,
    /// The ID that its thread holds, from the end of the switch that brought it in to the beginning
    /// of the next one.
    pub held: Option<Id>,
    /// The slot.
    pub slot: Slot,
    /// The progress of the context switch.
    pub step: Step,
}

/// The next atomic step of a context switch, as in [`CpuStep`](crate::kernel::state::CpuStep).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// No switch in progress.
    Rest,
    /// Full barrier between the store of the current thread and the load of the slot.
    Barrier(Then),
    /// Outgoing thread: load the slot.
    LoadOut,
    /// Outgoing thread: compare-exchange a marked slot to unset.
    ReleaseOut(Id),
    /// Outgoing thread: clear the bit.
    ClearOut(Id),
    /// Incoming thread: load the slot.
    LoadIn,
    /// Incoming thread: compare-exchange a marked slot to unset.
    ReleaseIn(Id),
    /// Incoming thread: clear the bit.
    ClearIn(Id),
    /// Incoming thread: test-and-set any free ID.
    Take,
    /// Incoming thread: store the ID into the slot.
    Install(Id),
    /// Exit: load the slot.
    LoadExit,
    /// Exit: compare-exchange the slot, marked or not, to unset.
    ReleaseExit(Slot),
    /// Exit: clear the bit.
    ClearExit(Id),
}

/// An agent that takes IDs away from a CPU other than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Nothing in flight.
    Idle,
    /// Taking an ID away.
    Thief(Thief),
}

/// An ID that is being stolen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thief {
    /// The ID.
    pub id: Id,
    /// The CPU that has it.
    pub from: CpuNr,
    /// The CPU that gets it, whose run-queue lock the thief holds; `None` if it will be freed.
    pub to: Option<CpuNr>,
    /// `true` if nothing was installed in the slot since it was loaded; used only if slots have
    /// version tags.
    pub same_version: bool,
    /// The next atomic step.
    pub step: ThiefStep,
}

/// The next atomic step of a thief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThiefStep {
    /// Compare-exchange the slot from valid to marked.
    Mark,
    /// Look at the CPU's current thread.
    Look,
    /// Compare-exchange the slot from marked to unset.
    Release,
    /// Clear the bit, or store the ID into the other CPU's slot.
    Settle,
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// The CPUs.
    pub cpus: [Cpu; CPUS],
    /// The remote agents.
    pub agents: [Agent; AGENTS],
    /// The ID bitmap.
    pub bitmap: u8,
    /// The rule that a step broke by itself, if any.
    pub fault: Option<Fault>,
}

impl State {
    /// Returns the CPU with a number.
    #[must_use]
    pub fn cpu(&self, nr: CpuNr) -> &Cpu {
        &self.cpus[usize::from(nr)]
    }

    /// Returns the CPU with a number, mutably.
    pub fn cpu_mut(&mut self, nr: CpuNr) -> &mut Cpu {
        &mut self.cpus[usize::from(nr)]
    }

    /// Clears a bit.
    pub fn clear(&mut self, id: Id) {
        if self.bitmap & 1 << id == 0 {
            self.fault = Some(Fault::DoubleFree);
        }
        self.bitmap &= !(1 << id);
    }

    /// Stores an ID into an unset slot, which gives the slot a new version.
    pub fn install(&mut self, cpu: CpuNr, id: Id) {
        if std::mem::replace(&mut self.cpu_mut(cpu).slot, Slot::Valid(id)) != Slot::Unset {
            self.fault = Some(Fault::Overwritten);
        }
        for agent in &mut self.agents {
            match agent {
                Agent::Thief(thief) if thief.from == cpu => thief.same_version = false,
                _ => {}
            }
        }
    }
}

impl Cpu {
    /// Makes the current thread visible to the other CPUs.
    pub fn drain(&mut self) {
        self.seen = self.current;
    }

    /// Compare-exchanges the slot; returns `true` if it succeeded.
    pub fn exchange(&mut self, from: Slot, to: Slot) -> bool {
        let same = self.slot == from;
        if same {
            self.slot = to;
        }
        same
    }
}
