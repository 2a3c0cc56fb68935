//! The global state of percid's table protocol.

/// A concurrency ID.
pub type Id = u8;
/// A CPU number.
pub type CpuNr = u8;

/// CPUs in the largest configuration.
pub const CPUS: usize = 3;
/// Threads in the largest configuration.
pub const THREADS: usize = 3;
/// Remote agents in the largest configuration.
pub const AGENTS: usize = 2;

/// The next atomic step of an add.
///
/// From [`At::Armed`] to [`At::Loaded`] the thread is inside its critical section. From
/// [`At::TryLock`] to [`At::Unblock`] it is in the slow path with signals blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    /// The add has not begun, or was aborted: store `rseq_cs`.
    Start,
    /// Negative control: the CPU number was read outside the section; store `rseq_cs`.
    Unarmed(CpuNr),
    /// Load the CPU number from the rseq area.
    Armed,
    /// Load the CPU's table entry.
    HasCpu(CpuNr),
    /// Load the data word of the ID.
    HasId(Id),
    /// Store the data word plus one: the commit.
    Loaded(Read),
    /// The entry was unset: block signals.
    Block,
    /// Try to take the lock.
    TryLock,
    /// Lock held: load the CPU number.
    LoadCpu,
    /// Lock held: load the entry of the CPU that this thread *was* on.
    LoadEntry(CpuNr),
    /// Lock held: take an ID away from another CPU.
    Stealing(Theft),
    /// Lock held: store a free ID into the entry.
    Install(CpuNr, Id),
    /// Release the lock.
    Unlock,
    /// Unblock signals.
    Unblock {
        /// `true` if the lock was denied, so that the shared slot is next.
        denied: bool,
    },
    /// Add to the shared slot, atomically.
    Shared,
    /// The thread has exited.
    Gone,
}

/// A data word held in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Read {
    /// The ID whose word it is.
    pub id: Id,
    /// `true` if no thread has stored to the word since. A store that is not based on a fresh value
    /// loses an increment.
    pub fresh: bool,
}

/// An ID that is being stolen from a CPU, with the lock held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Theft {
    /// The ID.
    pub id: Id,
    /// The CPU that has it, as long as that matters.
    pub victim: Option<CpuNr>,
    /// The CPU that gets it; `None` if it will be freed.
    pub to: Option<CpuNr>,
    /// The next atomic step.
    pub step: TheftStep,
}

/// The next atomic step of a theft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TheftStep {
    /// Store UNSET into the victim's entry.
    Unset,
    /// Fence the victim: abort the critical section in flight there.
    Fence,
    /// Load the ID's data word, with a plain load.
    Load,
    /// Store the data word plus one, with a plain store.
    Store {
        /// The same as in [`Read`].
        fresh: bool,
    },
    /// Store the ID into the entry of the CPU that gets it, or free it.
    Settle,
}

/// An add in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Add {
    /// The next step.
    pub at: At,
    /// `true` if the increment has been stored; for the properties only.
    pub landed: bool,
}

impl Add {
    /// An add that has not begun.
    pub const NEW: Self = Self { at: At::Start, landed: false };
}

/// A thread, which adds forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The CPU that it runs on; none while it is preempted.
    pub on: Option<CpuNr>,
    /// The add in progress; the signal handler's, while one runs.
    pub add: Add,
    /// The add that the signal handler interrupted.
    pub interrupted: Option<Add>,
}

/// A thread that does nothing but take IDs away. It does not matter where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Nothing in flight.
    Idle,
    /// Lock held: choose a victim.
    Choose,
    /// Lock held: take an ID away.
    Stealing(Theft),
    /// Lock held: take the IDs of several CPUs away and free them together.
    Evicting([Eviction; CPUS]),
    /// Release the lock.
    Unlock,
}

/// The progress of one CPU's eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Eviction {
    /// Its ID was not touched.
    Untouched,
    /// UNSET is stored in its entry; the ID is in transit.
    Unset(Id),
    /// It is fenced; the ID is in transit.
    Fenced(Id),
}

impl Eviction {
    /// Returns the ID in transit.
    #[must_use]
    pub fn id(self) -> Option<Id> {
        match self {
            Self::Untouched => None,
            Self::Unset(id) | Self::Fenced(id) => Some(id),
        }
    }
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// CPU to ID.
    pub table: [Option<Id>; CPUS],
    /// The free IDs.
    pub free: u8,
    /// `true` if a thread is in the slow path.
    pub locked: bool,
    /// The threads.
    pub threads: [Thread; THREADS],
    /// The remote agents.
    pub agents: [Agent; AGENTS],
    /// The rule that a step broke by itself, if any.
    pub fault: Option<Fault>,
}

/// A step that breaks a rule by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A store overwrote an increment that it had not loaded.
    Lost,
    /// One add was stored twice.
    Doubled,
    /// An add ended without having been stored.
    Missed,
    /// An ID was stored over another.
    Overwritten,
}

impl State {
    /// Returns the entry of a CPU, mutably.
    pub fn entry(&mut self, cpu: CpuNr) -> &mut Option<Id> {
        &mut self.table[usize::from(cpu)]
    }

    /// Stores an incremented data word.
    pub fn store(&mut self, read: Read) {
        if !read.fresh {
            self.fault = Some(Fault::Lost);
        }
        for thread in &mut self.threads {
            thread.add.at.outdate(read.id);
            if let Some(add) = &mut thread.interrupted {
                add.at.outdate(read.id);
            }
        }
        for agent in &mut self.agents {
            if let Agent::Stealing(theft) = agent {
                theft.outdate(read.id);
            }
        }
    }

    /// Stores an ID into a CPU's entry.
    pub fn install(&mut self, cpu: CpuNr, id: Id) {
        if self.entry(cpu).replace(id).is_some() {
            self.fault = Some(Fault::Overwritten);
        }
    }

    /// Aborts the critical section in flight on a CPU, if there is one.
    pub fn fence(&mut self, cpu: CpuNr) {
        for thread in self.threads.iter_mut().filter(|thread| thread.on == Some(cpu)) {
            thread.abort();
        }
    }
}

impl Thread {
    /// Aborts the critical section of a thread at a preemption, a migration, a signal or a fence:
    /// it begins again.
    pub fn abort(&mut self) {
        if self.add.at.in_section() {
            self.add.at = At::Start;
        }
    }
}

impl At {
    /// Returns `true` if the thread is between the first instruction of its critical section and
    /// the commit.
    #[must_use]
    pub fn in_section(self) -> bool {
        matches!(self, Self::Armed | Self::HasCpu(_) | Self::HasId(_) | Self::Loaded(_))
    }

    /// Returns `true` if the thread is in the slow path after the point where it blocks signals.
    #[must_use]
    pub fn in_slow_path(self) -> bool {
        matches!(
            self,
            Self::TryLock
                | Self::LoadCpu
                | Self::LoadEntry(_)
                | Self::Stealing(_)
                | Self::Install(..)
                | Self::Unlock
                | Self::Unblock { .. }
        )
    }

    fn outdate(&mut self, id: Id) {
        match self {
            Self::Loaded(read) if read.id == id => read.fresh = false,
            Self::Stealing(theft) => theft.outdate(id),
            _ => {}
        }
    }
}

impl Theft {
    fn outdate(&mut self, id: Id) {
        if self.id == id && matches!(self.step, TheftStep::Store { .. }) {
            self.step = TheftStep::Store { fresh: false };
        }
    }
}
