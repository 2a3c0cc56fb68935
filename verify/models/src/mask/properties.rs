//! Properties of every reachable state.

use super::state::State;

/// No thread will visit data that was announced.
pub const FORGOTTEN: &str =
    "P1 kept: data whose mark has returned, its bit clear, and no drain on its way to it";
/// A drain ended too early.
pub const OWED: &str = "P2 drains: a drain ends without what was marked before it began";

/// Returns the first property that `state` breaks.
///
/// [`FORGOTTEN`] is required at every moment. At rest, with no drain in progress, it means that
/// unvisited data implies a set bit.
pub(super) fn broken(state: &State) -> Option<&'static str> {
    let coming = state.drainers.iter().fold(state.mask, |coming, drainer| coming | drainer.left);
    let mut unvisited = state.markers.iter().flat_map(|marker| marker.unvisited());
    let forgotten =
        unvisited.any(|publication| publication.data.returned && coming & 1 << publication.id == 0);
    match (forgotten, state.owing) {
        (true, _) => Some(FORGOTTEN),
        (false, true) => Some(OWED),
        (false, false) => None,
    }
}
