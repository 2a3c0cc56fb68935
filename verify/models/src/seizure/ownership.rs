//! To whom blocks and items belong.

use super::state::{At, Flaw, Item, SeizeStep, Stack, Value};
use super::{Seizure, State};
use crate::structure::state::{Id, Set, Visit, Visitor};

/// Returns `true` if a visitor owns a block: it has confirmed the seizure, and not released it.
pub(super) fn owns(model: &Seizure, visitor: &Visitor<Stack>, id: Id) -> bool {
    match visitor.at {
        Visit::At(hold) if hold.id == id => match hold.step {
            SeizeStep::Take | SeizeStep::Release => true,
            SeizeStep::Clear => model.flaw != Some(Flaw::ReleaseFirst),
            _ => false,
        },
        _ => false,
    }
}

/// Returns `true` if a visitor owns a block and has taken what was inside.
pub(super) fn has_emptied(model: &Seizure, visitor: &Visitor<Stack>, id: Id) -> bool {
    let taking = matches!(visitor.at, Visit::At(hold) if hold.step == SeizeStep::Take);
    owns(model, visitor, id) && !taking
}

/// Returns the number of threads that may use an ID's block outside critical sections: visitors
/// that have confirmed their seizure, and threads that activate the block.
pub(super) fn owners(model: &Seizure, state: &State, id: Id) -> usize {
    let owns_before_it_marks = model.flaw != Some(Flaw::MarkFirst);
    let works = state.threads.iter().filter_map(|thread| thread.work);
    let threads = works.filter(|work| match work.at {
        At::Mark(of) | At::Publish(of) => of == id && owns_before_it_marks,
        _ => false,
    });
    let visitors = state.visitors.iter().filter(|visitor| owns(model, visitor, id)).count();
    threads.count() + visitors
}

/// Returns the items in a block, including those whose stores are still waiting in a buffer.
pub(super) fn live(model: &Seizure, state: &State, id: Id) -> impl Iterator<Item = Item> + use<> {
    let block = state.block_with(id, &state.buffers);
    let emptied =
        block.word.seized && state.visitors.iter().any(|visitor| has_emptied(model, visitor, id));
    let items = match block.word.value {
        Value::Items(items) if !emptied => items,
        _ => 0,
    };
    block.slots.into_iter().take(items.into()).flatten()
}

/// Returns the items that a drain must get if it begins now: all inside blocks whose activation is
/// visible.
pub(super) fn owed(model: &Seizure, state: &State) -> Set {
    let visible = (0..model.ids)
        .filter(|&id| !matches!(state.block(id).word.value, Value::Inactive | Value::Activating));
    visible.fold(0, |owed, id| owed | content(model, state, id))
}

/// Returns the items in a block that a drain must get.
pub(super) fn content(model: &Seizure, state: &State, id: Id) -> Set {
    live(model, state, id).fold(0, |items, item| items | 1 << item)
}

/// Returns the items that a drain may miss, since another one holds their block.
pub(super) fn excused(model: &Seizure, state: &State) -> Set {
    let seized = state.visitors.iter().filter_map(|visitor| match visitor.at {
        Visit::At(hold) => Some(hold.id),
        _ => None,
    });
    seized.fold(0, |excused, id| excused | content(model, state, id))
}
