//! Properties of every reachable state.

use super::protocol::Modes;
use super::state::{ChangeStep, Cid, CpuStep, Place, State};
use crate::kernel::state::Id;
use crate::kernel::{DOUBLE_FREE, LEAK, SHARED_ID, TWO_OWNERS};

/// A running thread uses an ID that neither it nor its CPU owns, or none.
pub const BORROWED: &str = "P2 ownership: a running thread's ID is neither its own nor its CPU's";
/// An ID has an owner that is none in the current mode.
pub const LEFT_BEHIND: &str = "P4 modes: an ID is left with an owner of the other mode";

/// Returns the first property that `state` breaks.
pub(super) fn broken(modes: &Modes, state: &State) -> Option<&'static str> {
    if state.fault.is_some() {
        return Some(DOUBLE_FREE);
    }
    let owners = (0..modes.ids).find_map(|id| disowned(state, id));
    shares(modes, state)
        .then_some(SHARED_ID)
        .or(owners)
        .or_else(|| borrows(modes, state).then_some(BORROWED))
        .or_else(|| left_behind(state).then_some(LEFT_BEHIND))
}

/// Returns the ID of the thread that runs on a CPU outside of switches.
fn held(state: &State, cpu: u8) -> Option<Id> {
    let at_rest = state.cpu(cpu).step == CpuStep::Rest;
    state.user_on(cpu).filter(|_| at_rest).and_then(|user| state.thread(user).cid.id())
}

fn shares(modes: &Modes, state: &State) -> bool {
    let same = |a, b| held(state, a).is_some() && held(state, a) == held(state, b);
    (0..modes.cpus).any(|a| (0..a).any(|b| same(a, b)))
}

/// Returns the broken property, if any: a bit is set exactly as long as it has an owner, and it has
/// one owner at a time.
fn disowned(state: &State, id: Id) -> Option<&'static str> {
    let of_cpus = state.cpus.iter().filter(|cpu| cpu.owned == Some(id)).count();
    let of_threads = state.threads.iter().filter(|t| t.cid.owned() == Some(id)).count();
    let in_switches = state
        .cpus
        .iter()
        .filter(|cpu| matches!(cpu.step, CpuStep::Drop(it) | CpuStep::Free(it) if it == id))
        .count();
    let exits = state.change.is_some_and(|change| change.step == ChangeStep::Drop(id));
    match of_cpus + of_threads + in_switches + usize::from(exits) {
        owners @ (0 | 1) if (state.bitmap & 1 << id != 0) == (owners == 1) => None,
        0 | 1 => Some(LEAK),
        _ => Some(TWO_OWNERS),
    }
}

fn borrows(modes: &Modes, state: &State) -> bool {
    (0..modes.cpus).any(|nr| {
        let cpu = state.cpu(nr);
        let cid = state.user_on(nr).map(|user| state.thread(user).cid);
        cpu.step == CpuStep::Rest
            && match cid {
                None | Some(Cid::Own(_) | Cid::Transit(_)) => false,
                Some(Cid::OfCpu(id)) => cpu.owned != Some(id),
                Some(Cid::Unset) => true,
            }
    })
}

/// Returns `true` if an owner was missed, once a change of mode is over: waiting threads must own
/// nothing if the CPUs are the owners, and CPUs nothing if the threads are.
fn left_behind(state: &State) -> bool {
    let hoards = |thread: &super::state::Thread| {
        thread.place == Place::Waiting && thread.cid.owned().is_some()
    };
    state.change.is_none()
        && if state.mode.per_cpu {
            state.threads.iter().any(hoards)
        } else {
            state.cpus.iter().any(|cpu| cpu.step == CpuStep::Rest && cpu.owned.is_some())
        }
}
