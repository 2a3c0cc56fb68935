//! Seizing a block: the way in which a drainer takes a block from the CPU that uses it without
//! locked instructions.
//!
//! Every ID has a block of memory with a state word. Threads that run with the ID change the block
//! in critical sections: read the word, read or write a slot, commit with one store to the word. A
//! drainer, on any CPU, marks the word as seized by a compare-exchange, makes the kernel abort the
//! sections in flight (membarrier), and confirms that none of them has committed over its mark.
//! Then only the drainer uses the block: sections that begin later find the mark and leave. A mask
//! contains the blocks that a drainer must visit; a block that was never used, or was drained, is
//! inactive and gets its bit when it is activated.
//!
//! A block is a stack: the word contains the number of items. Threads push and pop forever.
//!
//! # Representation of the data
//!
//! Items are few, distinct, and circulate: outside, in a thread that pushes, inside, and outside
//! again, by a pop or a drain. Each must be in exactly one of these places at any time. A push that
//! finds its block full or unsuitable ends with the item outside; the shared list or the caller
//! would handle it. Dead slots keep their items, so that a stale count would be detected.
//!
//! # Assumptions
//!
//! Those of [`crate::structure`], and:
//!
//! 1. Store buffers hold the stores of sections and of activations. [`Memory::Unordered`] lets
//!    stores to different places overtake each other, and the atomic set of a bit does not empty
//!    the buffer: the stores need no order among themselves. One order is fixed: a bit is set and
//!    cleared before the corresponding word is stored (a release store). The lock of drainers is
//!    one, too.
//! 2. The work of a drain on an owned block is one step: no other thread may access the block then,
//!    and that is checked. An operation never waits.
//! 3. A drain must get what is inside a block when it begins if the activation of the block is
//!    visible by then. An item in a block whose activation still waits in a store buffer may be
//!    missed: a thread can have learned of it only by a later store from the same buffer.
//!
//! [`Memory::Unordered`]: crate::memory::Memory::Unordered

mod narrate;
mod ownership;
mod properties;
pub mod state;
mod thread;
mod visitor;

use crate::structure::state::{CpuNr, Due, Hold, IDS, Id, Set, Thread, Visitor, Work};
use crate::structure::{Protocol, Renaming, Structure};
use state::{At, Block, CAPACITY, Data, Fault, Item, Op, SeizeStep, Value, Word, Write};

pub use crate::structure::SOLO;
pub use properties::{INTRUDED, LOST, OWED, SHARED, TWICE, UNMARKED};
pub use state::{Flaw, Stack};

/// One configuration of the model.
pub type Seizure = Structure<Stack>;
/// The global state.
pub type State = crate::structure::state::State<Stack>;

impl Seizure {
    /// Returns the protocol on one CPU with one ID: two threads, two drainers, two items.
    #[must_use]
    pub const fn on_one_cpu() -> Self {
        Structure::of(Stack { items: 2 })
    }

    /// Returns the same on two CPUs, between which the ID moves; one drainer.
    #[must_use]
    pub const fn with_theft() -> Self {
        Self { cpus: 2, visitors: 1, theft: true, ..Self::on_one_cpu() }
    }
}

/// Returns `true` if a thread holds an item that it will push.
fn pushes(thread: &Thread<Stack>, item: Item) -> bool {
    thread.work.is_some_and(|work| work.op == Op::Push(item))
}

impl Protocol for Stack {
    type Flaw = Flaw;
    type Op = Op;
    type At = At;
    type Write = Write;
    type Data = Data;
    type Step = SeizeStep;
    /// The word when it was loaded.
    type Known = Value;
    type Fault = Fault;

    const START: At = At::Start;
    const DRAINS: &'static [bool] = &[true];
    const NOTHING: Value = Value::Inactive;
    const MEMBARRIER: SeizeStep = SeizeStep::Membarrier;
    const PLAIN_MEMBARRIER: Flaw = Flaw::PlainMembarrier;
    const NO_TURNS: Flaw = Flaw::NoLock;
    const UNFENCED_THEFT: Flaw = Flaw::UnfencedTheft;
    const OWING: Fault = Fault::Owing;

    fn data(model: &Seizure) -> Data {
        let block = Block { word: Word::of(Value::Inactive), slots: [None; CAPACITY] };
        Data { blocks: [block; IDS], outside: (1 << model.protocol.items) - 1 }
    }

    fn operations(model: &Seizure, state: &State) -> impl Iterator<Item = Op> + use<> {
        let outside = state.data.outside;
        let pushed = (0..model.protocol.items).filter(move |item| outside & 1 << item != 0);
        pushed.map(Op::Push).chain([Op::Pop])
    }

    fn begin(state: &mut State, op: Op) {
        if let Op::Push(item) = op {
            state.data.outside &= !(1 << item);
        }
    }

    fn stores(work: Work<Self>) -> bool {
        match work.at {
            At::Slot(..) => matches!(work.op, Op::Push(_)),
            At::Commit { .. } | At::Own(_) | At::Publish(_) => true,
            At::Start | At::Load(_) | At::Begin | At::Check(_) | At::Mark(_) => false,
        }
    }

    fn waits(model: &Seizure, state: &State, cpu: CpuNr, at: At) -> bool {
        let seized = matches!(at, At::Load(id) if state.block_seen_on(cpu, id).word.seized);
        seized && model.flaw == Some(Flaw::Waits)
    }

    fn step(model: &Seizure, state: &mut State, due: Due<Self>) -> Option<At> {
        thread::step(model, state, due)
    }

    fn aborted(model: &Seizure, at: At) -> At {
        match at {
            At::Load(_) | At::Slot(..) | At::Commit { .. } => At::Start,
            At::Check(_) | At::Own(_) if model.flaw != Some(Flaw::Unprotected) => At::Begin,
            at => at,
        }
    }

    fn perform(model: &Seizure, state: &mut State, write: Write) {
        thread::perform(model, state, write);
    }

    fn steps(model: &Seizure) -> &'static [SeizeStep] {
        visitor::steps(model.flaw)
    }

    fn owed(model: &Seizure, state: &State) -> Set {
        ownership::owed(model, state)
    }

    fn excused(model: &Seizure, state: &State) -> Set {
        ownership::excused(model, state)
    }

    fn act(model: &Seizure, state: &mut State, _: usize, hold: Hold<Self>) -> Option<Hold<Self>> {
        visitor::seize(model, state, hold)
    }

    /// Forgets the value of the word before steps that do not need it.
    fn passes_over(hold: &mut Hold<Self>, _: bool) -> bool {
        if matches!(hold.step, SeizeStep::Clear | SeizeStep::Release) {
            hold.known = Value::Inactive;
        }
        false
    }

    fn broken(model: &Seizure, state: &State) -> Option<&'static str> {
        properties::broken(model, state)
    }

    fn items(&self) -> u8 {
        self.items
    }

    fn trait_of_item(state: &State, item: Item) -> (bool, bool) {
        let pushed = state.threads.iter().any(|thread| pushes(thread, item));
        (state.data.outside & 1 << item != 0, pushed)
    }

    fn rename_data(names: &Renaming<'_>, data: Data) -> Data {
        let block = |block: Block| Block {
            slots: block.slots.map(|slot| slot.map(|item| names.item(item))),
            ..block
        };
        Data { blocks: names.by_id(data.blocks).map(block), outside: names.items(data.outside) }
    }

    fn rename_write(names: &Renaming<'_>, write: Write) -> Write {
        match write {
            Write::Word(id, word) => Write::Word(names.id(id), word),
            Write::Slot(id, slot, item) => Write::Slot(names.id(id), slot, names.item(item)),
        }
    }

    fn rename_work(names: &Renaming<'_>, mut work: Work<Self>) -> Work<Self> {
        if let Op::Push(item) = &mut work.op {
            *item = names.item(*item);
        }
        match &mut work.at {
            At::Start | At::Begin => {}
            At::Commit { id, popped, .. } => {
                *id = names.id(*id);
                *popped = popped.map(|item| names.item(item));
            }
            At::Load(id)
            | At::Slot(id, _)
            | At::Check(id)
            | At::Own(id)
            | At::Mark(id)
            | At::Publish(id) => *id = names.id(*id),
        }
        work
    }

    fn rename_owed(names: &Renaming<'_>, owed: Set) -> Set {
        names.items(owed)
    }

    fn say_op(op: Op) -> String {
        format!("begins to {}", narrate::what(op))
    }

    fn say_step(model: &Seizure, before: &State, cpu: CpuNr, work: Work<Self>) -> String {
        narrate::thread_step(model, before, cpu, work)
    }

    fn say_write(write: Write) -> String {
        narrate::place(write)
    }

    fn say_visit(_: &Seizure, before: &State, _: Visitor<Self>, hold: Hold<Self>) -> String {
        narrate::seize_step(before, hold)
    }

    fn picture(state: &State, id: Id) -> String {
        narrate::picture(state, id)
    }

    fn picture_of_rest(model: &Seizure, state: &State) -> String {
        narrate::outside(model, state)
    }
}
