//! The memory of an ID, and the steps of its users.

use super::State;
use crate::memory::{Buffer, Store};
use crate::structure::state::{CpuNr, IDS, Id, Set, WAITING};

/// An item that is pushed and popped.
pub type Item = u8;

/// Slots of a block.
pub const CAPACITY: usize = 2;

/// Blocks are stacks, of this many items together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stack {
    /// Number of items.
    pub items: u8,
}

/// A negative control: a deviation from the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flaw {
    /// A drainer calls no membarrier.
    NoMembarrier,
    /// A drainer's membarrier is the plain one: a barrier that aborts no sections.
    PlainMembarrier,
    /// A drainer calls membarrier before it marks the word.
    MembarrierFirst,
    /// A drainer does not confirm that its mark is still there.
    NoConfirmation,
    /// A drainer marks the word by a plain store.
    PlainSeizure,
    /// A drainer releases the word before it clears the bit.
    ReleaseFirst,
    /// Drainers do not exclude each other.
    NoLock,
    /// A drainer that lost its mark to a section leaves the block alone.
    GivesUp,
    /// An activation sets the bit before it owns the word, and stores the active word at once.
    MarkFirst,
    /// An activation takes the word outside a critical section.
    Unprotected,
    /// An operation waits for the end of a seizure.
    Waits,
    /// The thief does not fence.
    UnfencedTheft,
}

/// The meaning of a block's state word.
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
    /// Its meaning.
    pub value: Value,
    /// `true` if it carries the seized mark.
    pub seized: bool,
}

impl Word {
    /// Returns a word without the seized mark.
    #[must_use]
    pub const fn of(value: Value) -> Self {
        Self { value, seized: false }
    }

    /// Returns a word with the seized mark.
    #[must_use]
    pub const fn seized(value: Value) -> Self {
        Self { value, seized: true }
    }

    /// Returns `true` if critical sections may change the block.
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

/// The operation of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Push an item, which the thread holds until then.
    Push(Item),
    /// Pop an item.
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
        /// The ID of the word.
        id: Id,
        /// The new value of the word.
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

/// The memory of all IDs, and the items that are in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Data {
    /// The blocks, by ID.
    pub blocks: [Block; IDS],
    /// The items that are neither inside nor being pushed.
    pub outside: Set,
}

/// A step that breaks a rule by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An item was returned twice.
    Twice,
    /// A section committed to a block that a thread owned.
    Intruded,
    /// A drain ended without what it owed.
    Owing,
}

impl State {
    /// Returns the block of an ID.
    #[must_use]
    pub fn block(&self, id: Id) -> &Block {
        &self.data.blocks[usize::from(id)]
    }

    /// Returns the word of an ID's block in memory, mutably.
    pub fn word_mut(&mut self, id: Id) -> &mut Word {
        &mut self.data.blocks[usize::from(id)].word
    }

    /// Returns the block as it will be once the stores that wait in `buffers` are visible.
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

    /// Returns the block as a thread on `cpu` sees it.
    #[must_use]
    pub fn block_seen_on(&self, cpu: CpuNr, id: Id) -> Block {
        self.block_with(id, std::slice::from_ref(&self.buffers[usize::from(cpu)]))
    }

    /// Makes a store visible.
    pub fn perform(&mut self, write: Write) {
        match write {
            Write::Word(id, word) => *self.word_mut(id) = word,
            Write::Slot(id, slot, item) => {
                self.data.blocks[usize::from(id)].slots[usize::from(slot)] = Some(item);
            }
        }
    }

    /// Returns an item to the outside, by a pop or a drain, or after a push that was refused.
    pub fn hand_out(&mut self, item: Item) {
        if self.data.outside & 1 << item != 0 {
            self.fault = Some(Fault::Twice);
        }
        self.data.outside |= 1 << item;
        self.visitors.iter_mut().for_each(|visitor| visitor.owed &= !(1 << item));
    }
}
