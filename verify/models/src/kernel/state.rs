//! The global state of the kernel's slot protocol.

/// A concurrency ID: the number of its bit in the process's bitmap.
pub type Id = u8;
/// A CPU number.
pub type CpuNr = u8;
/// A thread number.
pub type ThreadNr = u8;

/// CPUs in the largest configuration.
pub const CPUS: usize = 3;
/// Threads in the largest configuration.
pub const THREADS: usize = 3;
/// Remote agents in the largest configuration.
pub const AGENTS: usize = 2;

/// The word that CPUs and remote agents contend for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// This CPU holds no ID.
    Unset,
    /// This CPU holds the ID.
    Valid(Id),
    /// The ID is marked for release; no thread may start using it.
    Lazy(Id),
}

impl Slot {
    /// Returns the ID in the slot, marked or not.
    #[must_use]
    pub fn id(self) -> Option<Id> {
        match self {
            Self::Unset => None,
            Self::Valid(id) | Self::Lazy(id) => Some(id),
        }
    }
}

/// A CPU: its scheduler, and its slot for the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cpu {
    /// The thread of the process that this CPU has made current; none while it runs something else.
    pub current: Option<ThreadNr>,
    /// `true` if *other* CPUs observe a thread of the process as current here. Differs from
    /// `current` only while the store of the current thread waits in the store buffer.
    pub seen_running: bool,
    /// The slot.
    pub slot: Slot,
    /// The ID that this CPU held last, from generation c on.
    pub recent: Option<Id>,
    /// `true` if the slot's time stamp is 100 ms old.
    pub expired: bool,
    /// The progress of the context switch.
    pub step: CpuStep,
}

/// The next atomic step of a context switch (or of an exit) on a CPU. All but [`CpuStep::Rest`]
/// hold the run-queue lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuStep {
    /// No switch in progress.
    Rest,
    /// Full barrier between the store of the current thread and the load of the slot.
    Barrier(Then),
    /// Outgoing thread: store the time stamp.
    StampOut,
    /// Outgoing thread: load the slot.
    LoadOut,
    /// Outgoing thread: compare-exchange a marked slot to unset.
    ReleaseOut(Id),
    /// Outgoing thread: clear the bit.
    ClearOut(Id),
    /// Incoming thread: load the slot.
    LoadIn,
    /// Incoming thread takes over the slot's ID: store the time stamp.
    StampIn(Id),
    /// Incoming thread: compare-exchange a marked slot to unset.
    ReleaseIn(Id),
    /// Incoming thread: clear the bit.
    ClearIn(Id),
    /// Allocation, generation d: load `max_nr_cid` to see whether it must shrink.
    LoadShrink,
    /// Allocation, generation d: compare-exchange `max_nr_cid` downwards.
    Shrink {
        /// Expected value.
        from: u8,
        /// New value.
        to: u8,
    },
    /// Allocation: load the recent ID; it is usable if it is below the bound.
    LoadRecent {
        /// `max_nr_cid` as loaded before, or the number of CPUs if the generation does not compare.
        below: u8,
    },
    /// Allocation: test-and-set the recent ID.
    TakeRecent(Id),
    /// Allocation: load `max_nr_cid` to see whether it may be raised.
    LoadMax,
    /// Allocation: compare-exchange `max_nr_cid` from the value to the next.
    Raise(Id),
    /// Allocation: test-and-set the brand-new ID.
    TakeNew(Id),
    /// Allocation: load the bitmap; spins while it is full.
    LoadBitmap,
    /// Allocation: test-and-set the first free ID.
    TakeFirst(Id),
    /// Allocation failed: wait for the slow lock.
    Lock,
    /// Allocation succeeded under the slow lock: release it.
    Unlock(Id),
    /// Allocation succeeded: store the time stamp.
    StampNew(Id),
    /// Allocation succeeded: store the ID into the slot.
    Install(Id),
    /// Allocation succeeded: store the recent ID.
    Remember(Id),
    /// Exit: load the slot.
    LoadExit,
    /// Exit: compare-exchange the slot, marked or not, to unset.
    ReleaseExit(Slot),
    /// Exit: clear the bit.
    ClearExit(Id),
    /// Exit: the process has one user fewer.
    Leave,
}

/// The step after the barrier of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Then {
    /// The previous thread belongs to the process.
    Outgoing,
    /// It does not, but the next thread does.
    Incoming,
    /// The current thread leaves the process.
    Exiting,
}

/// The location of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Off the CPU that it is assigned to.
    Waiting(CpuNr),
    /// On a CPU; this includes the thread that a switch in progress takes off.
    Running(CpuNr),
    /// On its way to a CPU; that CPU's run-queue lock is held for it.
    Moving(CpuNr),
    /// Gone.
    Dead,
}

/// A thread of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Its location.
    pub place: Place,
    /// The ID that it used last; while it runs, the ID that it holds.
    pub last: Option<Id>,
}

/// An agent that takes IDs away from a CPU other than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Nothing in flight.
    Idle,
    /// Moving a thread between CPUs, with the run-queue lock of the destination held.
    Mover(Mover),
    /// Scanning all CPUs.
    Scanner(Scanner),
}

/// A migration in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mover {
    /// The thread.
    pub thread: ThreadNr,
    /// The CPU that it comes from.
    pub from: CpuNr,
    /// The CPU that it goes to.
    pub to: CpuNr,
    /// `true` if the destination had a slot (or a recent ID) at the beginning.
    pub settled: bool,
    /// `true` if nothing was installed in the source's slot since it was loaded; used only if slots
    /// have version tags.
    pub same_version: bool,
    /// The next atomic step.
    pub step: MoverStep,
}

/// The next atomic step of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MoverStep {
    /// Load the destination's recent ID.
    LoadToRecent,
    /// Load the source's slot.
    LoadFrom,
    /// First look at the source's current thread.
    Look(Id),
    /// Compare-exchange the source's slot from valid to marked.
    Mark(Id),
    /// Second look at the source's current thread.
    LookAgain(Id),
    /// Compare-exchange the source's slot from marked to unset.
    Release(Id),
    /// Store unset into the source's recent ID.
    ForgetRecent(Id),
    /// Clear the bit.
    Clear(Id),
    /// Store the destination's time stamp.
    StampTo(Id),
    /// Store the ID into the destination's slot.
    InstallTo(Id),
    /// Store the destination's recent ID.
    RememberTo(Id),
}

/// A scan in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scanner {
    /// The thread that carries it out.
    pub by: ThreadNr,
    /// CPUs not yet visited in this pass.
    pub todo: u8,
    /// The number of set bits, in the second pass.
    pub weight: Option<u8>,
    /// The next atomic step.
    pub step: ScannerStep,
}

impl Scanner {
    /// Returns `true` if its CPU takes no interrupts, so that its thread is not preempted.
    #[must_use]
    pub fn interrupts_off(&self) -> bool {
        matches!(self.step, ScannerStep::Clear(RemoteClear { step: ClearStep::Clear, .. }))
    }
}

/// The next atomic step of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScannerStep {
    /// Go to a CPU not yet visited, and look at its current thread (first pass) or load its slot
    /// (second pass).
    Visit,
    /// The CPU runs a thread of the process: store its time stamp.
    Stamp(CpuNr),
    /// Load the CPU's time stamp.
    LoadTime(CpuNr),
    /// Load the CPU's slot: the remote clear begins.
    LoadSlot(CpuNr),
    /// The rest of the remote clear.
    Clear(RemoteClear),
    /// Count the set bits; the second pass begins.
    LoadWeight,
}

/// A remote clear in flight: a thread has observed a valid slot and tries to free its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteClear {
    /// The CPU.
    pub cpu: CpuNr,
    /// The ID that its slot held.
    pub id: Id,
    /// The same as in [`Mover`].
    pub same_version: bool,
    /// The next atomic step.
    pub step: ClearStep,
}

/// The next atomic step of a remote clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClearStep {
    /// Compare-exchange the slot from valid to marked.
    Mark,
    /// Look at the CPU's current thread.
    Look,
    /// Compare-exchange the slot from marked to unset.
    Release,
    /// Clear the bit.
    Clear,
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// The CPUs.
    pub cpus: [Cpu; CPUS],
    /// The threads.
    pub threads: [Thread; THREADS],
    /// The remote agents.
    pub agents: [Agent; AGENTS],
    /// The ID bitmap.
    pub bitmap: u8,
    /// Number of IDs that were ever assigned, from generation c on.
    pub max_nr_cid: u8,
    /// Threads that the process counts.
    pub users: u8,
    /// The CPU that holds the slow lock of the allocator.
    pub slow_lock: Option<CpuNr>,
    /// `true` if 100 ms have passed since the last scan began.
    pub scan_due: bool,
    /// The rule that a step broke by itself, if any.
    pub fault: Option<Fault>,
}

/// A step that breaks a rule by itself, whatever the state after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A clear bit was cleared.
    DoubleFree,
    /// An ID was stored into a slot that held one.
    Overwritten,
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

    /// Tests and sets a bit; returns `true` if it was clear.
    pub fn take(&mut self, id: Id) -> bool {
        let clear = self.bitmap & 1 << id == 0;
        self.bitmap |= 1 << id;
        clear
    }

    /// Clears a bit.
    pub fn clear(&mut self, id: Id) {
        if self.bitmap & 1 << id == 0 {
            self.fault = Some(Fault::DoubleFree);
        }
        self.bitmap &= !(1 << id);
    }

    /// Compare-exchanges a slot; returns `true` if it succeeded.
    pub fn exchange(&mut self, cpu: CpuNr, from: Slot, to: Slot) -> bool {
        let slot = &mut self.cpu_mut(cpu).slot;
        let same = *slot == from;
        if same {
            *slot = to;
        }
        same
    }

    /// Stores an ID into an unset slot, which gives the slot a new version.
    pub fn install(&mut self, cpu: CpuNr, id: Id) {
        if self.cpu(cpu).slot != Slot::Unset {
            self.fault = Some(Fault::Overwritten);
        }
        self.cpu_mut(cpu).slot = Slot::Valid(id);
        for agent in &mut self.agents {
            match agent {
                Agent::Mover(mover) if mover.from == cpu => mover.same_version = false,
                Agent::Scanner(Scanner { step: ScannerStep::Clear(clear), .. })
                    if clear.cpu == cpu =>
                {
                    clear.same_version = false;
                }
                _ => {}
            }
        }
    }

    /// Returns `true` if a migration holds the run-queue lock of `cpu`.
    #[must_use]
    pub fn locked_by_mover(&self, cpu: CpuNr) -> bool {
        self.agents.iter().any(|agent| matches!(agent, Agent::Mover(mover) if mover.to == cpu))
    }

    /// Returns `true` if an agent has made its last look at `cpu`, but not yet its second
    /// compare-exchange.
    #[must_use]
    pub fn about_to_release(&self, cpu: CpuNr) -> bool {
        self.agents.iter().any(|agent| match agent {
            Agent::Idle => false,
            Agent::Mover(mover) => mover.from == cpu && matches!(mover.step, MoverStep::Release(_)),
            Agent::Scanner(scanner) => matches!(
                scanner.step,
                ScannerStep::Clear(clear) if clear.cpu == cpu && clear.step == ClearStep::Release
            ),
        })
    }

    fn scanners(&self) -> impl Iterator<Item = &Scanner> {
        self.agents.iter().filter_map(|agent| match agent {
            Agent::Scanner(scanner) => Some(scanner),
            Agent::Idle | Agent::Mover(_) => None,
        })
    }

    /// Returns `true` if a thread is in the middle of a scan.
    #[must_use]
    pub fn scans(&self, thread: ThreadNr) -> bool {
        self.scanners().any(|scanner| scanner.by == thread)
    }

    /// Returns the scan whose thread runs on `cpu`.
    #[must_use]
    pub fn scan_on(&self, cpu: CpuNr) -> Option<&Scanner> {
        let current = self.cpu(cpu).current?;
        self.scanners().find(|scanner| scanner.by == current)
    }

    /// Returns `true` if a thread runs outside of switches.
    #[must_use]
    pub fn is_at_work(&self, thread: ThreadNr) -> bool {
        self.cpus.iter().any(|cpu| cpu.current == Some(thread) && cpu.step == CpuStep::Rest)
    }

    /// Returns the thread that runs on `cpu` and the ID that it holds, outside of switches.
    #[must_use]
    pub fn holder(&self, cpu: CpuNr) -> Option<(ThreadNr, Option<Id>)> {
        let cpu = self.cpu(cpu);
        let thread = cpu.current.filter(|_| cpu.step == CpuStep::Rest)?;
        Some((thread, self.thread(thread).last))
    }
}
