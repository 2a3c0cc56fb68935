//! Properties of every reachable state.

use super::state::{At, Fault, Lock, Use};
use super::{Local, State, visitor};
use crate::structure::state::Id;

/// Two threads use one value.
pub const SHARED: &str = "P1 exclusion: a shard has two owners";
/// A lock shows that there is a value, and there is none.
pub const REVIVED: &str = "P2 values: a value that was taken out is handed out again";
/// A value is forgotten.
pub const LOST: &str = "P2 values: a value is made over another one";
/// A thread was faster than a visitor.
pub const OVERTAKEN: &str = "P3 progress: a thread gets a shard that a visitor already waits for";
/// A thread keeps being faster than a visitor.
pub const STARVED: &str = "P3 progress: a thread takes a lock twice while a visitor waits for it";
/// Visitors would not find a shard.
pub const UNMARKED: &str = "P4 mask: a shard has a value that nobody uses, and its bit is clear";
/// A visit ended too early.
pub const OWED: &str = "P5 visits: a visit ends without a value that was there before it began";

/// Returns the first property that `state` breaks.
pub(super) fn broken(model: &Local, state: &State) -> Option<&'static str> {
    let mut ids = 0..model.ids;
    let free = |id| state.shard(id).lock == Lock::Ready && owners(model, state, id) == 0;
    if ids.clone().any(|id| owners(model, state, id) > 1) {
        Some(SHARED)
    } else if state.fault == Some(Fault::Revived)
        || ids.clone().any(|id| free(id) && !state.shard(id).value)
    {
        Some(REVIVED)
    } else if state.fault == Some(Fault::Lost) {
        Some(LOST)
    } else if model.data_only {
        None
    } else if state.fault == Some(Fault::Starved) {
        Some(STARVED)
    } else if state.fault == Some(Fault::Overtaken) {
        Some(OVERTAKEN)
    } else if ids.any(|id| free(id) && state.mask & 1 << id == 0) {
        Some(UNMARKED)
    } else if state.fault == Some(Fault::Owing) {
        Some(OWED)
    } else {
        None
    }
}

/// Returns the number of owners of an ID's shard: threads that have taken the lock for good, and
/// visitors.
fn owners(model: &Local, state: &State, id: Id) -> usize {
    let owns = |at| matches!(at, At::Shard(of, Use::Make | Use::Mark | Use::Inside) if of == id);
    let works = state.threads.iter().filter_map(|thread| thread.work);
    let visitors = state.visitors.iter().filter(|visitor| visitor::owns(model, visitor, id));
    works.filter(|work| owns(work.at)).count() + visitors.count()
}
