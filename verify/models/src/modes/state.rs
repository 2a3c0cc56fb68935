//! The global state of the ownership modes.

use crate::kernel::state::{CpuNr, Fault, Id, ThreadNr};

/// CPUs in the largest configuration.
pub const CPUS: usize = 3;
/// Threads in the largest configuration.
pub const THREADS: usize = 4;

/// The owners of IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mode {
    /// The CPUs; otherwise the threads.
    pub per_cpu: bool,
    /// `true` if owners are still being changed.
    pub transit: bool,
}

/// The ID of a thread, and its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cid {
    /// It has none.
    Unset,
    /// Its own, to take along.
    Own(Id),
    /// Its own until it is switched out.
    Transit(Id),
    /// That of the CPU on which it runs.
    OfCpu(Id),
}

impl Cid {
    /// Returns the ID.
    #[must_use]
    pub fn id(self) -> Option<Id> {
        match self {
            Self::Unset => None,
            Self::Own(id) | Self::Transit(id) | Self::OfCpu(id) => Some(id),
        }
    }

    /// Returns the ID, if it goes where the thread goes.
    #[must_use]
    pub fn owned(self) -> Option<Id> {
        match self {
            Self::Unset | Self::OfCpu(_) => None,
            Self::Own(id) | Self::Transit(id) => Some(id),
        }
    }
}

/// A CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cpu {
    /// The thread of the process that runs here.
    pub current: Option<ThreadNr>,
    /// The ID that this CPU owns.
    pub owned: Option<Id>,
    /// The progress of the context switch.
    pub step: CpuStep,
}

/// The next atomic step of a context switch. All but [`CpuStep::Rest`] hold the run-queue lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuStep {
    /// No switch in progress.
    Rest,
    /// The previous thread has an ID in transit: load the mode.
    Out,
    /// Clear the bit that the previous thread had.
    Drop(Id),
    /// Load the mode for the next thread.
    In,
    /// Set the first free bit. Spins while there is none.
    Take(Mode),
    /// The ID is above the bound: set the first free bit below it, if there is one.
    Converge {
        /// The mode as loaded.
        mode: Mode,
        /// The ID.
        from: Id,
        /// The bound as loaded.
        below: u8,
    },
    /// Clear the bit of an ID too many.
    Free(Id),
}

/// The location of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Not created, or gone.
    Nowhere,
    /// On no CPU; any CPU may take it.
    Waiting,
    /// On a CPU.
    Running(CpuNr),
    /// Being taken off a CPU by a switch in progress.
    Leaving(CpuNr),
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Its location.
    pub place: Place,
    /// Its ID.
    pub cid: Cid,
    /// `true` if it counts as a user of the process: from its creation until its exit.
    pub active: bool,
}

/// A fork or an exit in flight, and the change of mode that it causes. It holds the mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Change {
    /// The thread that carries it out.
    pub by: ThreadNr,
    /// The thread that is born.
    pub child: Option<ThreadNr>,
    /// `true` if the CPUs become the owners; otherwise the threads. All other owners of IDs are
    /// fixed up.
    pub to_cpus: bool,
    /// Owners that must still be fixed up: threads if the CPUs become the owners, otherwise CPUs.
    pub todo: u8,
    /// The next atomic step.
    pub step: ChangeStep,
}

/// The next atomic step of a fork or an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeStep {
    /// Exit: clear the bit of the thread's ID.
    Drop(Id),
    /// Store the mode.
    StoreMode,
    /// Store the transition bit, if it is in a word of its own.
    StoreTransit,
    /// Go to an owner, or finish.
    Next,
    /// Wait for the owner's run-queue lock, and fix the owner up.
    Fix(u8),
    /// Without the lock: what was seen of the owner is acted upon.
    Act {
        /// The owner.
        owner: u8,
        /// Its ID as seen.
        id: Option<Id>,
        /// The running thread that uses it, as seen.
        running: Option<ThreadNr>,
    },
    /// Fork: the new thread takes an ID. Spins while there is none.
    Give,
    /// Release the mutex.
    End,
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// The CPUs.
    pub cpus: [Cpu; CPUS],
    /// The threads.
    pub threads: [Thread; THREADS],
    /// The holder of the mutex.
    pub change: Option<Change>,
    /// The mode.
    pub mode: Mode,
    /// The ID bitmap.
    pub bitmap: u8,
    /// Threads that the process counts.
    pub users: u8,
    /// IDs below it are tried first.
    pub max_cids: u8,
    /// In per-CPU mode: with fewer users, threads become the owners again.
    pub threshold: u8,
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

    /// Returns the thread with a number.
    #[must_use]
    pub fn thread(&self, nr: ThreadNr) -> &Thread {
        &self.threads[usize::from(nr)]
    }

    /// Returns the thread with a number, mutably.
    pub fn thread_mut(&mut self, nr: ThreadNr) -> &mut Thread {
        &mut self.threads[usize::from(nr)]
    }

    /// Returns the first clear bit below a bound.
    #[must_use]
    pub fn first_free(&self, below: u8) -> Option<Id> {
        (0..below).find(|id| self.bitmap & 1 << id == 0)
    }

    /// Clears a bit.
    pub fn clear(&mut self, id: Id) {
        if self.bitmap & 1 << id == 0 {
            self.fault = Some(Fault::DoubleFree);
        }
        self.bitmap &= !(1 << id);
    }

    /// Returns `true` if a thread runs, and its CPU is not about to switch.
    #[must_use]
    pub fn is_at_work(&self, thread: ThreadNr) -> bool {
        self.cpus.iter().any(|cpu| cpu.current == Some(thread) && cpu.step == CpuStep::Rest)
    }

    /// Returns the active thread that runs on a CPU.
    #[must_use]
    pub fn user_on(&self, cpu: CpuNr) -> Option<ThreadNr> {
        self.cpu(cpu).current.filter(|&thread| self.thread(thread).active)
    }
}
