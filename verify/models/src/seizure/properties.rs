//! What must hold in every reachable state.

use super::protocol::{Action, Seizure};
use super::state::{Fault, Item, State};
use super::{ownership, thread};
use crate::explore::Model;

/// An item is nowhere.
pub const LOST: &str = "P1 items: an item is lost";
/// An item has two owners.
pub const TWICE: &str = "P1 items: an item is in two places, or is handed out twice";
/// Two threads use one block.
pub const SHARED: &str = "P2 exclusion: a block has two owners";
/// A critical section changes what it must not.
pub const INTRUDED: &str = "P2 exclusion: a section commits to a block that somebody owns";
/// A thread waits for another one.
pub const SOLO: &str = "P3 progress: a running thread cannot finish its operation by itself";
/// Drainers would not find a block.
pub const UNMARKED: &str = "P4 mask: a block is active and not seized, and its bit is clear";
/// A drain ended too early.
pub const OWED: &str = "P5 drains: a drain ends without what was inside before it began";

/// More own steps than the longest undisturbed operation takes.
const SOLO_STEPS: usize = 32;

/// The first property that `state` breaks.
pub(super) fn broken(model: &Seizure, state: &State) -> Option<&'static str> {
    let mut ids = 0..model.ids;
    let places = |item| places(model, state, item);
    if state.fault == Some(Fault::Twice) || (0..model.items).any(|item| places(item) > 1) {
        Some(TWICE)
    } else if (0..model.items).any(|item| places(item) == 0) {
        Some(LOST)
    } else if model.items_only {
        None
    } else if ids.clone().any(|id| ownership::owners(model, state, id) > 1) {
        Some(SHARED)
    } else if state.fault == Some(Fault::Intruded) {
        Some(INTRUDED)
    } else if ids.any(|id| state.block(id).word.is_active() && state.mask & 1 << id == 0) {
        Some(UNMARKED)
    } else if state.fault == Some(Fault::Owing) {
        Some(OWED)
    } else if !(0..model.threads.into()).all(|nr| finishes_alone(model, state, nr)) {
        Some(SOLO)
    } else {
        None
    }
}

/// How many owners an item has.
fn places(model: &Seizure, state: &State, item: Item) -> usize {
    let hands = state.threads.iter().filter(|thread| thread.pushes(item));
    let inside = (0..model.ids).flat_map(|id| ownership::live(model, state, id));
    let outside = usize::from(state.outside & 1 << item != 0);
    outside + hands.count() + inside.filter(|&other| other == item).count()
}

/// Whether a running thread, if no other thread takes a step and nothing disturbs it, comes to the
/// end of what it is doing.
fn finishes_alone(model: &Seizure, state: &State, nr: usize) -> bool {
    let mut alone = *state;
    for _ in 0..SOLO_STEPS {
        let (Some(cpu), Some(_)) = (alone.threads[nr].on, alone.threads[nr].work) else {
            return true;
        };
        let action = if thread::can_step(model, &alone, nr) {
            Action::Thread(nr)
        } else if !alone.buffers[usize::from(cpu)].is_empty() {
            Action::Flush(cpu, 0)
        } else {
            return false;
        };
        alone = model.apply(&alone, action);
    }
    false
}
