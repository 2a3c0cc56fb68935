//! The steps of a structure's threads and visitors.

use std::fmt::Debug;
use std::hash::Hash;

use super::state::{CpuNr, Due, Hold, Id, Set, State, Visitor, Work};
use super::{Renaming, Structure};
use crate::memory::Store;

/// A part of states.
pub trait Piece: Debug + Copy + Ord + Hash + 'static {}

impl<T: Debug + Copy + Ord + Hash + 'static> Piece for T {}

/// The memory of an ID, and the operations that change it.
pub trait Protocol: Piece {
    /// A negative control: a deviation from the protocol.
    type Flaw: Piece;
    /// The operation that a thread begins.
    type Op: Piece;
    /// The next atomic step of a thread.
    type At: Piece;
    /// A store of a thread.
    type Write: Piece + Store;
    /// The memory of all IDs.
    type Data: Piece;
    /// One atomic step of a visit to an ID.
    type Step: Piece;
    /// State of a visit to an ID.
    type Known: Piece;
    /// A step that breaks a rule by itself.
    type Fault: Piece;

    /// The first step of an operation.
    const START: Self::At;
    /// `true` if a visit takes out what it finds: the choices.
    const DRAINS: &'static [bool];
    /// Returns the state of a visit that begins.
    const NOTHING: Self::Known;
    /// The step in which membarrier reaches the CPUs one by one.
    const MEMBARRIER: Self::Step;
    /// A visitor's membarrier is the plain one: a barrier that aborts no sections.
    const PLAIN_MEMBARRIER: Self::Flaw;
    /// Visitors take no turns.
    const NO_TURNS: Self::Flaw;
    /// The thief does not fence.
    const UNFENCED_THEFT: Self::Flaw;
    /// A visit ended without what it owed.
    const OWING: Self::Fault;

    /// Returns the initial memory of all IDs.
    fn data(model: &Structure<Self>) -> Self::Data;

    /// Returns the initial ID of a CPU.
    fn first_id(model: &Structure<Self>, cpu: CpuNr) -> Option<Id> {
        (cpu < model.ids).then_some(cpu)
    }

    /// Returns the operations that a thread may begin.
    fn operations(
        model: &Structure<Self>,
        state: &State<Self>,
    ) -> impl Iterator<Item = Self::Op> + use<Self>;

    /// Applies the other changes when an operation begins.
    fn begin(_: &mut State<Self>, _: Self::Op) {}

    /// Returns `true` if a step is one that stores, and so needs room in the buffer.
    fn stores(work: Work<Self>) -> bool;

    /// Returns `true` if a thread waits for another one, which must not happen.
    fn waits(_: &Structure<Self>, _: &State<Self>, _: CpuNr, _: Self::At) -> bool {
        false
    }

    /// Takes a step of a thread, and returns the next one; none at the end of the operation.
    fn step(model: &Structure<Self>, state: &mut State<Self>, due: Due<Self>) -> Option<Self::At>;

    /// Returns the store of a step that fails; `None` if it cannot fail.
    fn failure(_: Self::At) -> Option<Self::Write> {
        None
    }

    /// Returns the step at which an aborted thread goes on.
    fn aborted(model: &Structure<Self>, at: Self::At) -> Self::At;

    /// Makes a store of a thread visible.
    fn perform(model: &Structure<Self>, state: &mut State<Self>, write: Self::Write);

    /// Returns the steps of a visit to an ID.
    fn steps(model: &Structure<Self>) -> &'static [Self::Step];

    /// Returns the items that a visit which begins now must have had when it ends.
    fn owed(model: &Structure<Self>, state: &State<Self>) -> Set;

    /// Returns the items that it need not have had after all.
    fn excused(_: &Structure<Self>, _: &State<Self>) -> Set {
        0
    }

    /// Returns `true` if a visitor waits for a thread.
    fn visitor_waits(_: &Structure<Self>, _: &State<Self>, _: Hold<Self>) -> bool {
        false
    }

    /// Takes a step of a visit, and returns the next one; none at its end.
    fn act(
        model: &Structure<Self>,
        state: &mut State<Self>,
        nr: usize,
        hold: Hold<Self>,
    ) -> Option<Hold<Self>>;

    /// Returns `true` if a visit omits its next step; may also clear known values that the visit
    /// does not need.
    fn passes_over(hold: &mut Hold<Self>, drains: bool) -> bool;

    /// Returns the first property that `state` breaks, [`super::SOLO`] aside.
    fn broken(model: &Structure<Self>, state: &State<Self>) -> Option<&'static str>;

    /// Returns the number of things that circulate.
    fn items(&self) -> u8 {
        0
    }

    /// Returns the properties of a circulating item that do not depend on names.
    fn trait_of_item(_: &State<Self>, _: u8) -> (bool, bool) {
        (false, false)
    }

    /// Renames the memory of all IDs.
    fn rename_data(names: &Renaming<'_>, data: Self::Data) -> Self::Data;

    /// Renames a store.
    fn rename_write(names: &Renaming<'_>, write: Self::Write) -> Self::Write;

    /// Renames an operation.
    fn rename_work(names: &Renaming<'_>, work: Work<Self>) -> Work<Self>;

    /// Renames the items that a visit owes.
    fn rename_owed(names: &Renaming<'_>, owed: Set) -> Set;

    /// Describes the operation of a thread: "begins to push x".
    fn say_op(op: Self::Op) -> String;

    /// Describes a step of a thread.
    fn say_step(
        model: &Structure<Self>,
        before: &State<Self>,
        cpu: CpuNr,
        work: Work<Self>,
    ) -> String;

    /// Describes a store.
    fn say_write(write: Self::Write) -> String;

    /// Describes a step of a visit.
    fn say_visit(
        model: &Structure<Self>,
        before: &State<Self>,
        visitor: Visitor<Self>,
        hold: Hold<Self>,
    ) -> String;

    /// Returns the memory of an ID as a part of a line.
    fn picture(state: &State<Self>, id: Id) -> String;

    /// Describes the rest of the state.
    fn picture_of_rest(_: &Structure<Self>, _: &State<Self>) -> String {
        String::new()
    }
}
