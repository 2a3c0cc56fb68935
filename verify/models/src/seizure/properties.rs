//! Properties of every reachable state.

use super::state::{Fault, Item};
use super::{Seizure, State, ownership};

/// An item is nowhere.
pub const LOST: &str = "P1 items: an item is lost";
/// An item has two owners.
pub const TWICE: &str = "P1 items: an item is in two places, or is handed out twice";
/// Two threads use one block.
pub const SHARED: &str = "P2 exclusion: a block has two owners";
/// A critical section changes what it must not.
pub const INTRUDED: &str = "P2 exclusion: a section commits to a block that somebody owns";
/// Drainers would not find a block.
pub const UNMARKED: &str = "P4 mask: a block is active and not seized, and its bit is clear";
/// A drain ended too early.
pub const OWED: &str = "P5 drains: a drain ends without what was inside before it began";

/// Returns the first property that `state` breaks.
pub(super) fn broken(model: &Seizure, state: &State) -> Option<&'static str> {
    let mut ids = 0..model.ids;
    let places = |item| places(model, state, item);
    if state.fault == Some(Fault::Twice) || (0..model.protocol.items).any(|item| places(item) > 1) {
        Some(TWICE)
    } else if (0..model.protocol.items).any(|item| places(item) == 0) {
        Some(LOST)
    } else if model.data_only {
        None
    } else if ids.clone().any(|id| ownership::owners(model, state, id) > 1) {
        Some(SHARED)
    } else if state.fault == Some(Fault::Intruded) {
        Some(INTRUDED)
    } else if ids.any(|id| state.block(id).word.is_active() && state.mask & 1 << id == 0) {
        Some(UNMARKED)
    } else if state.fault == Some(Fault::Owing) {
        Some(OWED)
    } else {
        None
    }
}

/// Returns the number of owners of an item.
fn places(model: &Seizure, state: &State, item: Item) -> usize {
    let hands = state.threads.iter().filter(|thread| super::pushes(thread, item));
    let inside = (0..model.ids).flat_map(|id| ownership::live(model, state, id));
    let outside = usize::from(state.data.outside & 1 << item != 0);
    outside + hands.count() + inside.filter(|&other| other == item).count()
}
