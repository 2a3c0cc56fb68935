//! The global state of the seizure protocol.

use crate::memory::{Buffer, Store};

/// A concurrency ID, and the number of its block.
pub type Id = u8;
/// A CPU number.
pub type CpuNr = u8;
/// An item that is pushed and popped.
pub type Item = u8;
/// A set of IDs, CPUs or items, one bit each.
pub type Set = u8;

/// CPUs in the largest configuration.
pub const CPUS: usize = 2;
/// Threads in the largest configuration.
pub const THREADS: usize = 3;
/// IDs in the largest configuration.
pub const IDS: usize = 2;
/// Drainers in the largest configuration.
pub const DRAINERS: usize = 2;
/// Items in the largest configuration.
pub const ITEMS: u8 = 2;
/// Slots of a block.
pub const CAPACITY: usize = 2;
/// Stores of a CPU that wait in its buffer.
pub const WAITING: usize = 3;

/// What a block's state word says about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Nothing: no thread may use the block.
    Inactive,
    /// Nothing yet: the thread that activates the block has stored this, with the seized mark.
    Activating,
    /// A stack of that many items.
    Items(u8),
}

/// A block's state word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word {
    /// What it says.
    pub value: Value,
    /// Whether it carries the seized mark.
    pub seized: bool,
}

impl Word {
    /// A word without the seized mark.
    #[must_use]
    pub const fn of(value: Value) -> Self {
        Self { value, seized: false }
    }

    /// A word with the seized mark.
    #[must_use]
    pub const fn seized(value: Value) -> Self {
        Self { value, seized: true }
    }

    /// Whether critical sections may change the block.
    #[must_use]
    pub fn is_active(self) -> bool {
        !self.seized && !matches!(self.value, Value::Inactive | Value::Activating)
    }
}

/// The memory of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    /// The state word.
    pub word: Word,
    /// The slots of the stack. Beyond its items they are dead, and keep what was there.
    pub slots: [Option<Item>; CAPACITY],
}

/// A store to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Write {
    /// The state word.
    Word(Id, Word),
    /// A slot.
    Slot(Id, u8, Item),
}

impl Store for Write {
    type Place = (Id, Option<u8>);

    fn place(&self) -> Self::Place {
        match *self {
            Self::Word(id, _) => (id, None),
            Self::Slot(id, slot, _) => (id, Some(slot)),
        }
    }
}

/// What a thread wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// To push an item, which it has in its hands until then.
    Push(Item),
    /// To pop an item.
    Pop,
}

/// The next atomic step of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum At {
    /// Begin the critical section: load the CPU's ID.
    Start,
    /// In the section: load the word.
    Load(Id),
    /// In the section: store the item into the first dead slot, or load the last live one.
    Slot(Id, u8),
    /// In the section: store the word.
    Commit {
        /// Whose word.
        id: Id,
        /// What it is to say.
        value: Value,
        /// The item that was loaded.
        popped: Option<Item>,
    },
    /// Activation, begin the critical section: load the CPU's ID.
    Begin,
    /// Activation, in the section: load the word.
    Check(Id),
    /// Activation, in the section: store ACTIVATING with the seized mark.
    Own(Id),
    /// Activation: set the ID's bit in the mask.
    Mark(Id),
    /// Activation: store the word of a block that is empty.
    Publish(Id),
}

/// An operation in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work {
    /// What for.
    pub op: Op,
    /// The next step.
    pub at: At,
}

/// A thread, which pushes and pops forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The CPU that it runs on; none while it is preempted.
    pub on: Option<CpuNr>,
    /// The operation in progress.
    pub work: Option<Work>,
}

impl Thread {
    /// Whether it has an item in its hands.
    #[must_use]
    pub fn pushes(&self, item: Item) -> bool {
        self.work.is_some_and(|work| work.op == Op::Push(item))
    }
}

/// One atomic step of a seizure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SeizeStep {
    /// Load the word.
    Load,
    /// Compare-exchange the word: the same with the seized mark.
    Exchange,
    /// Negative control: a plain store of the same.
    Overwrite,
    /// Membarrier: it reaches the CPUs one by one.
    Membarrier,
    /// Load the word: is it still what the exchange has stored?
    Confirm,
    /// Take the items.
    Take,
    /// Clear the ID's bit in the mask.
    Clear,
    /// Store INACTIVE.
    Release,
}

/// A block being seized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hold {
    /// Whose block.
    pub id: Id,
    /// The next step.
    pub step: SeizeStep,
    /// What the word said when it was loaded.
    pub value: Value,
    /// The CPUs that membarrier has reached.
    pub reached: Set,
}

/// The next atomic step of a drainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Drain {
    /// Nothing in progress.
    Idle,
    /// Take the structure's lock.
    Lock,
    /// Load the mask.
    Mask,
    /// Choose an ID from those that are left.
    Choose,
    /// Seize a block.
    Seize(Hold),
    /// Release the lock.
    Unlock,
}

/// A thread that drains. It does not matter where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Drainer {
    /// The next step.
    pub at: Drain,
    /// The IDs that are left.
    pub left: Set,
    /// What it must have got when it ends.
    pub owed: Set,
}

impl Drainer {
    /// Nothing in progress.
    pub const IDLE: Self = Self { at: Drain::Idle, left: 0, owed: 0 };
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
    /// The blocks, by ID.
    pub blocks: [Block; IDS],
    /// The CPUs' store buffers.
    pub buffers: [Buffer<Write, WAITING>; CPUS],
    /// The mask: IDs whose block may be active.
    pub mask: Set,
    /// Whether a drainer holds the structure's lock.
    pub locked: bool,
    /// The items that are neither inside nor being pushed.
    pub outside: Set,
    /// The threads.
    pub threads: [Thread; THREADS],
    /// The drainers.
    pub drainers: [Drainer; DRAINERS],
    /// Who moves IDs.
    pub thief: Thief,
    /// Whether a step broke a rule by itself.
    pub fault: Option<Fault>,
}

/// A step that breaks a rule by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An item was handed out twice.
    Twice,
    /// A section committed to a block that a thread owned.
    Intruded,
    /// A drain ended without what it owed.
    Owing,
}

impl State {
    /// The block of an ID.
    #[must_use]
    pub fn block(&self, id: Id) -> &Block {
        &self.blocks[usize::from(id)]
    }

    /// The word of an ID's block in memory.
    pub fn word_mut(&mut self, id: Id) -> &mut Word {
        &mut self.blocks[usize::from(id)].word
    }

    /// The block as it will be once the stores that wait in `buffers` are visible.
    pub fn block_with(&self, id: Id, buffers: &[Buffer<Write, WAITING>]) -> Block {
        let mut block = *self.block(id);
        for write in buffers.iter().flat_map(Buffer::iter) {
            match *write {
                Write::Word(of, word) if of == id => block.word = word,
                Write::Slot(of, slot, item) if of == id => {
                    block.slots[usize::from(slot)] = Some(item);
                }
                Write::Word(..) | Write::Slot(..) => {}
            }
        }
        block
    }

    /// The block as a thread on `cpu` sees it.
    #[must_use]
    pub fn block_seen_on(&self, cpu: CpuNr, id: Id) -> Block {
        self.block_with(id, std::slice::from_ref(&self.buffers[usize::from(cpu)]))
    }

    /// A store becomes visible.
    pub fn perform(&mut self, write: Write) {
        match write {
            Write::Word(id, word) => *self.word_mut(id) = word,
            Write::Slot(id, slot, item) => {
                self.blocks[usize::from(id)].slots[usize::from(slot)] = Some(item);
            }
        }
    }

    /// An item is handed out, by a pop or a drain; or it comes back from a push that was refused.
    pub fn hand_out(&mut self, item: Item) {
        if self.outside & 1 << item != 0 {
            self.fault = Some(Fault::Twice);
        }
        self.outside |= 1 << item;
        self.drainers.iter_mut().for_each(|drainer| drainer.owed &= !(1 << item));
    }
}
