//! The memory of an ID, and the steps of its users.

use super::{Local, State};
use crate::memory::Store;
use crate::structure::state::{CpuNr, IDS, Id, Visit, Visitor};

/// The instruction by which threads take a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Taking {
    /// A critical section that stores.
    Section,
    /// An exchange, between two checks.
    Exchange,
}

/// A negative control: a deviation from the protocol. A few of them are harmless, which the
/// catalogue states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flaw {
    /// A visitor calls no membarrier.
    NoMembarrier,
    /// A visitor's membarrier is the plain one: a barrier that aborts no sections.
    PlainMembarrier,
    /// A visitor calls membarrier before it closes the shard.
    MembarrierFirst,
    /// A visitor does not close the shard.
    NoClosing,
    /// A visitor is content with finding the lock free.
    NoExchange,
    /// A visitor opens the shard before it gives the lock back.
    OpenFirst,
    /// Both of these.
    OpenFirstNoExchange,
    /// A visitor clears the bit after it has opened the shard.
    ClearLast,
    /// A visitor leaves a shard alone that a thread holds.
    SkipsHeld,
    /// Visitors take no turns.
    NoTurns,
    /// A section loads the lock before it looks whether the shard is closed.
    StateFirst,
    /// A thread exchanges without looking first.
    NoFirstLook,
    /// A thread does not look again after the exchange.
    NoSecondLook,
    /// A thread waits until the shard is open.
    Waits,
    /// The thief does not fence.
    UnfencedTheft,
}

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
    /// `true` if a visitor has closed it.
    pub closed: bool,
    /// `true` if there is a value. No step depends on it.
    pub value: bool,
}

/// The memory of all IDs.
pub type Shards = [Shard; IDS];

/// A store to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Write {
    /// The ID whose lock it is.
    pub id: Id,
    /// The new state of the lock.
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
    /// A step that concerns the ID's shard.
    Shard(Id, Use),
}

/// One atomic step of a thread at a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Use {
    /// Is the shard closed?
    Look,
    /// In the section: load the lock.
    Load,
    /// In the section: store the token.
    Commit,
    /// Without a section: exchange the lock for the token.
    Exchange,
    /// Without a section: a full barrier; has the shard been closed in between?
    LookAgain,
    /// Without a section: store what was found.
    PutBack,
    /// The shard is this thread's, and there is no value: make one. That may fail.
    Make,
    /// The shard is this thread's: set the ID's bit in the mask.
    Mark,
    /// The shard is this thread's: use the value, then store READY, wherever the thread runs by
    /// then.
    Inside,
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
    /// Returns the shard of an ID.
    #[must_use]
    pub fn shard(&self, id: Id) -> &Shard {
        &self.data[usize::from(id)]
    }

    /// Returns the shard of an ID, mutably.
    pub fn shard_mut(&mut self, id: Id) -> &mut Shard {
        &mut self.data[usize::from(id)]
    }

    /// Returns the lock as a thread on `cpu` sees it.
    #[must_use]
    pub fn lock_seen_on(&self, cpu: CpuNr, id: Id) -> Lock {
        let mut waiting = self.buffers[usize::from(cpu)].iter().rev();
        waiting.find(|write| write.id == id).map_or(self.shard(id).lock, |write| write.lock)
    }

    /// Returns `true` if a visitor waits for the lock of an ID's shard, or is about to take it.
    #[must_use]
    pub fn is_waited_for(&self, id: Id) -> bool {
        let waits = |visitor: &Visitor<Taking>| {
            let Visit::At(hold) = visitor.at else { return false };
            hold.id == id && hold.step == Step::Take
        };
        self.visitors.iter().any(waits)
    }
}

impl Local {
    /// Returns `true` if a visitor takes the lock by an exchange.
    pub(super) fn exchanges(&self) -> bool {
        !matches!(self.flaw, Some(Flaw::NoExchange | Flaw::OpenFirstNoExchange))
    }
}
