//! What must hold in every reachable state.

use super::protocol::{Action, Local};
use super::state::{At, Fault, Id, Lock, State};
use super::{thread, visitor};
use crate::explore::Model;

/// Two threads use one value.
pub const SHARED: &str = "P1 exclusion: a shard has two owners";
/// A lock says that there is a value, and there is none.
pub const REVIVED: &str = "P2 values: a value that was taken out is handed out again";
/// A value is forgotten.
pub const LOST: &str = "P2 values: a value is made over another one";
/// A thread waits for another one.
pub const SOLO: &str = "P3 progress: a running thread cannot finish its operation by itself";
/// A thread was faster than a visitor.
pub const OVERTAKEN: &str = "P3 progress: a thread gets a shard that a visitor already waits for";
/// A thread keeps being faster than a visitor.
pub const STARVED: &str = "P3 progress: a thread takes a lock twice while a visitor waits for it";
/// Visitors would not find a shard.
pub const UNMARKED: &str = "P4 mask: a shard has a value that nobody uses, and its bit is clear";
/// A visit ended too early.
pub const OWED: &str = "P5 visits: a visit ends without a value that was there before it began";

/// More own steps than the longest undisturbed operation takes.
const SOLO_STEPS: usize = 32;

/// The first property that `state` breaks.
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
    } else if model.values_only {
        None
    } else if state.fault == Some(Fault::Starved) {
        Some(STARVED)
    } else if state.fault == Some(Fault::Overtaken) {
        Some(OVERTAKEN)
    } else if ids.any(|id| free(id) && state.mask & 1 << id == 0) {
        Some(UNMARKED)
    } else if state.fault == Some(Fault::Owing) {
        Some(OWED)
    } else if !(0..model.threads.into()).all(|nr| finishes_alone(model, state, nr)) {
        Some(SOLO)
    } else {
        None
    }
}

/// How many use an ID's shard: threads that have taken the lock for good, and visitors.
fn owners(model: &Local, state: &State, id: Id) -> usize {
    let works = state.threads.iter().filter_map(|thread| thread.work);
    let threads = works
        .filter(|work| matches!(work.at, At::Make(of) | At::Mark(of) | At::Inside(of) if of == id));
    let visitors =
        state.visitors.iter().filter(|visitor| visitor::owns(model, visitor, id)).count();
    threads.count() + visitors
}

/// Whether a running thread, if no other thread takes a step and nothing disturbs it, comes to the
/// end of what it is doing.
fn finishes_alone(model: &Local, state: &State, nr: usize) -> bool {
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
