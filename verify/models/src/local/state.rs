//! The global state of the local's protocol.

use crate::memory::{Buffer, Store};

/// A concurrency ID, and the number of its shard.
pub type Id = u8;
/// A CPU number.
pub type CpuNr = u8;
/// A set of IDs or CPUs, one bit each.
pub type Set = u8;

/// CPUs in the largest configuration.
pub const CPUS: usize = 2;
/// Threads in the largest configuration.
pub const THREADS: usize = 3;
/// IDs in the largest configuration.
pub const IDS: usize = 2;
/// Visitors in the largest configuration.
pub const VISITORS: usize = 2;
/// Stores of a CPU that wait in its buffer.
pub const WAITING: usize = 3;

/// A shard's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lock {
    /// There is no value.
    None,
    /// There is a value that no thread uses.
    Ready,
    /// A thread's token. Whose does not matter: no thread compares it.
    Held,
}

/// The memory of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard {
    /// The lock.
    pub lock: Lock,
    /// Whether a visitor has closed it.
    pub closed: bool,
    /// Whether there is a value. No step depends on it.
    pub value: bool,
}

/// A store to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Write {
    /// Whose lock.
    pub id: Id,
    /// What it becomes.
    pub lock: Lock,
}

impl Store for Write {
    type Place = Id;

    fn place(&self) -> Id {
        self.id
    }
}

/// The next atomic step of a thread that uses a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    /// Load the CPU's ID, the first step of the section if there is one.
    Start,
    /// Is the shard closed?
    Look(Id),
    /// In the section: load the lock.
    Load(Id),
    /// In the section: store the token.
    Commit(Id),
    /// Without a section: exchange the lock for the token.
    Exchange(Id),
    /// Without a section: a full barrier; has the shard been closed in between?
    LookAgain(Id),
    /// Without a section: store what was found.
    PutBack(Id),
    /// The shard is this thread's, and there is no value: make one. That may fail.
    Make(Id),
    /// The shard is this thread's: set the ID's bit in the mask.
    Mark(Id),
    /// The shard is this thread's: use the value, then store READY, wherever the thread runs by
    /// then.
    Inside(Id),
}

/// An operation in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work {
    /// What the lock must be.
    pub expects: Lock,
    /// The next step.
    pub at: At,
}

/// A thread, which uses values forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The CPU that it runs on; none while it is preempted.
    pub on: Option<CpuNr>,
    /// The operation in progress.
    pub work: Option<Work>,
    /// Whether it has taken the lock that a visitor waits for, since that visitor waits.
    pub overtook: bool,
}

/// One atomic step of a visit to a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Close the shard.
    Close,
    /// Membarrier: it reaches the CPUs one by one.
    Membarrier,
    /// Exchange READY for the token; wait while the lock is held.
    Take,
    /// Use the value, or take it out.
    Use,
    /// Clear the ID's bit in the mask, if the value was taken out.
    Clear,
    /// Store READY, or NONE if the value was taken out.
    Release,
    /// Open the shard.
    Open,
}

/// A shard being visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hold {
    /// Whose shard.
    pub id: Id,
    /// The next step.
    pub step: Step,
    /// Whether the visitor has taken the lock.
    pub taken: bool,
    /// The CPUs that membarrier has reached.
    pub reached: Set,
}

/// The next atomic step of a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Visit {
    /// Nothing in progress.
    Idle,
    /// Wait for the turn.
    Turn,
    /// Load the mask.
    Mask,
    /// Choose an ID from those that are left.
    Choose,
    /// Visit a shard.
    Shard(Hold),
    /// End the turn.
    End,
}

/// A thread that visits all values, or drains them. It does not matter where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Visitor {
    /// The next step.
    pub at: Visit,
    /// Whether it takes the values out.
    pub drains: bool,
    /// The IDs that are left.
    pub left: Set,
    /// The IDs whose value it must have had when it ends.
    pub owed: Set,
}

impl Visitor {
    /// Nothing in progress.
    pub const IDLE: Self = Self { at: Visit::Idle, drains: false, left: 0, owed: 0 };

    /// Whether it waits for the lock of an ID's shard, or is about to take it.
    #[must_use]
    pub fn waits_for(&self, id: Id) -> bool {
        matches!(self.at, Visit::Shard(hold) if hold.id == id && hold.step == Step::Take)
    }
}

/// An agent that moves IDs from CPU to CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Thief {
    /// Nothing in flight.
    Idle,
    /// The CPU's entry is unset: fence it.
    Fence(CpuNr, Id),
    /// Store the ID into an entry that is unset.
    Install(Id),
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// CPU to ID.
    pub table: [Option<Id>; CPUS],
    /// The shards, by ID.
    pub shards: [Shard; IDS],
    /// The CPUs' store buffers.
    pub buffers: [Buffer<Write, WAITING>; CPUS],
    /// The mask: IDs whose shard may have a value.
    pub mask: Set,
    /// Whether it is some visitor's turn.
    pub turn: bool,
    /// The threads.
    pub threads: [Thread; THREADS],
    /// The visitors.
    pub visitors: [Visitor; VISITORS],
    /// Who moves IDs.
    pub thief: Thief,
    /// Whether a step broke a rule by itself.
    pub fault: Option<Fault>,
}

/// A step that breaks a rule by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A thread was given a value that is not there.
    Revived,
    /// A value was made over another one.
    Lost,
    /// A thread got a shard after the visitor's fence and before the visitor.
    Overtaken,
    /// A thread took a lock twice while a visitor waited for it.
    Starved,
    /// A visit ended without what it owed.
    Owing,
}

impl State {
    /// The shard of an ID.
    #[must_use]
    pub fn shard(&self, id: Id) -> &Shard {
        &self.shards[usize::from(id)]
    }

    /// The shard of an ID, to change it.
    pub fn shard_mut(&mut self, id: Id) -> &mut Shard {
        &mut self.shards[usize::from(id)]
    }

    /// The lock as a thread on `cpu` sees it.
    #[must_use]
    pub fn lock_seen_on(&self, cpu: CpuNr, id: Id) -> Lock {
        let mut waiting = self.buffers[usize::from(cpu)].iter().rev();
        waiting.find(|write| write.id == id).map_or(self.shard(id).lock, |write| write.lock)
    }

    /// A store becomes visible.
    pub fn perform(&mut self, write: Write) {
        self.shard_mut(write.id).lock = write.lock;
    }
}
