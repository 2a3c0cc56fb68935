//! Properties of every reachable state; the same as in the kernel's model.

use super::Rules;
use super::state::{Agent, State, Step, ThiefStep};
use crate::kernel::state::{Fault, Id};
use crate::kernel::{DOUBLE_FREE, LEAK, OVERWRITTEN, SHARED_ID, TWO_OWNERS};

/// Returns the first property that `state` breaks.
pub(super) fn broken(rules: &Rules, state: &State) -> Option<&'static str> {
    match state.fault {
        Some(Fault::DoubleFree) => return Some(DOUBLE_FREE),
        Some(Fault::Overwritten) => return Some(OVERWRITTEN),
        None => {}
    }
    let mut ids = 0..rules.cpus;
    if rules.sharing_ends && ids.clone().any(|id| holders(state, id) > 1) {
        return Some(SHARED_ID);
    }
    ids.find_map(|id| disowned(state, id))
}

fn holders(state: &State, id: Id) -> usize {
    state.cpus.iter().filter(|cpu| cpu.held == Some(id)).count()
}

/// Returns the broken property, if any: a bit is set exactly as long as it has an owner, and it has
/// one owner at a time.
fn disowned(state: &State, id: Id) -> Option<&'static str> {
    let slots = state.cpus.iter().filter(|cpu| cpu.slot.id() == Some(id)).count();
    let switches = state.cpus.iter().filter(|cpu| match cpu.step {
        Step::ClearOut(other)
        | Step::ClearIn(other)
        | Step::ClearExit(other)
        | Step::Install(other) => other == id,
        _ => false,
    });
    let thieves = state.agents.iter().filter(|agent| match agent {
        Agent::Thief(thief) => thief.id == id && thief.step == ThiefStep::Settle,
        Agent::Idle => false,
    });
    let owners = slots + switches.count() + thieves.count();
    let set = state.bitmap & 1 << id != 0;
    match owners {
        0 | 1 if set == (owners == 1) => None,
        0 | 1 => Some(LEAK),
        _ => Some(TWO_OWNERS),
    }
}
