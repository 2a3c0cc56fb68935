//! Properties of every reachable state.

use super::protocol::Kernel;
use super::state::{
    Agent, ClearStep, CpuNr, CpuStep, Fault, Id, MoverStep, Scanner, ScannerStep, State,
};

/// Two running threads of the process hold one ID.
pub const SHARED_ID: &str = "P1 uniqueness: two running threads hold one ID";
/// A clear bit is cleared.
pub const DOUBLE_FREE: &str = "P2 ownership: a bit is freed twice";
/// An installation destroys an ID.
pub const OVERWRITTEN: &str = "P2 ownership: an ID is stored over another";
/// A bit is set and no thread will clear it, or the reverse.
pub const LEAK: &str = "P2 ownership: a bit does not agree with its owners";
/// An ID has two owners.
pub const TWO_OWNERS: &str = "P2 ownership: an ID has two owners";

/// Returns the first property that `state` breaks.
pub(super) fn broken(kernel: &Kernel, state: &State) -> Option<&'static str> {
    match state.fault {
        Some(Fault::DoubleFree) => return Some(DOUBLE_FREE),
        Some(Fault::Overwritten) => return Some(OVERWRITTEN),
        None => {}
    }
    if kernel.sharing_ends && shares(kernel, state) {
        return Some(SHARED_ID);
    }
    (0..kernel.cpus).find_map(|id| disowned(state, id))
}

/// Returns `true` if P1 is broken. A thread holds its ID from the end of the switch that brings it
/// in to the beginning of the one that takes it out.
fn shares(kernel: &Kernel, state: &State) -> bool {
    let held = |cpu: CpuNr| state.holder(cpu).and_then(|(_, id)| id);
    (0..kernel.cpus).any(|a| (0..a).any(|b| held(a).is_some() && held(a) == held(b)))
}

/// Returns the property if P2 is broken: a bit is set exactly as long as it has an owner, and it
/// has one owner at a time.
fn disowned(state: &State, id: Id) -> Option<&'static str> {
    let slots = state.cpus.iter().filter(|cpu| cpu.slot.id() == Some(id)).count();
    let switches = state.cpus.iter().filter(|cpu| in_transit(cpu.step) == Some(id)).count();
    let agents = state.agents.iter().filter(|agent| carried(agent) == Some(id)).count();
    let set = state.bitmap & 1 << id != 0;
    match slots + switches + agents {
        0 | 1 if set == (slots + switches + agents == 1) => None,
        0 | 1 => Some(LEAK),
        _ => Some(TWO_OWNERS),
    }
}

/// Returns the ID that a switch owns between slot and bitmap.
fn in_transit(step: CpuStep) -> Option<Id> {
    match step {
        CpuStep::ClearOut(id)
        | CpuStep::ClearIn(id)
        | CpuStep::ClearExit(id)
        | CpuStep::Unlock(id)
        | CpuStep::StampNew(id)
        | CpuStep::Install(id) => Some(id),
        _ => None,
    }
}

/// Returns the ID that an agent owns after it won the second compare-exchange.
fn carried(agent: &Agent) -> Option<Id> {
    match agent {
        Agent::Mover(mover) => match mover.step {
            MoverStep::ForgetRecent(id)
            | MoverStep::Clear(id)
            | MoverStep::StampTo(id)
            | MoverStep::InstallTo(id) => Some(id),
            _ => None,
        },
        Agent::Scanner(Scanner { step: ScannerStep::Clear(clear), .. }) => {
            (clear.step == ClearStep::Clear).then_some(clear.id)
        }
        Agent::Scanner(_) | Agent::Idle => None,
    }
}
