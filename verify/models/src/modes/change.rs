//! Fork, exit, and the change of mode that they may cause, step by step.

use super::protocol::{Flaw, Modes};
use super::state::{Change, ChangeStep, Cid, CpuStep, Place, State};
use crate::kernel::state::{Id, ThreadNr};

/// Takes the mutex; there is one user more.
pub(super) fn fork(modes: &Modes, state: &mut State, by: ThreadNr, child: ThreadNr) {
    state.thread_mut(child).active = true;
    state.users += 1;
    begin(modes, state, by, Some(child));
}

/// Takes the mutex; there is one user fewer, which frees its ID unless that is the CPU's.
pub(super) fn exit(modes: &Modes, state: &mut State, by: ThreadNr) {
    let thread = state.thread_mut(by);
    let cid = std::mem::replace(&mut thread.cid, Cid::Unset);
    thread.active = false;
    state.users -= 1;
    begin(modes, state, by, None);
    // With the mark left on it the number names no bit.
    let out_of_range = modes.flaw == Some(Flaw::MarkedAtExit) && matches!(cid, Cid::Transit(_));
    if let (Some(id), Some(change)) = (cid.owned().filter(|_| !out_of_range), &mut state.change) {
        change.step = ChangeStep::Drop(id);
    }
}

fn begin(modes: &Modes, state: &mut State, by: ThreadNr, child: Option<ThreadNr>) {
    let (max_cids, threshold) = modes.bounds(state.users);
    state.max_cids = max_cids;
    let mut change =
        Change { by, child, to_cpus: state.mode.per_cpu, todo: 0, step: ChangeStep::End };
    if !state.mode.per_cpu && state.users > max_cids {
        (change.to_cpus, state.threshold) = (true, threshold);
    } else if state.mode.per_cpu && state.users < state.threshold {
        change.to_cpus = false;
    }
    change.step = after_count(state, &change);
    state.change = Some(change);
}

fn after_count(state: &State, change: &Change) -> ChangeStep {
    if change.to_cpus != state.mode.per_cpu { ChangeStep::StoreMode } else { give_or_end(change) }
}

/// Threads that own IDs are born with one.
fn give_or_end(change: &Change) -> ChangeStep {
    if change.child.is_some() && !change.to_cpus { ChangeStep::Give } else { ChangeStep::End }
}

/// Returns `true` if the CPU of the thread that performs a change takes no interrupts.
pub(super) fn interrupts_off(change: &Change) -> bool {
    !matches!(change.step, ChangeStep::Next | ChangeStep::Act { .. } | ChangeStep::End)
}

/// Returns `true` if the next step can be taken: it waits for a run-queue lock, or until an ID is
/// free.
pub(super) fn can_step(modes: &Modes, state: &State, change: &Change) -> bool {
    let waits = match change.step {
        ChangeStep::Next => change.todo != 0,
        ChangeStep::Fix(owner) if modes.flaw != Some(Flaw::Unlocked) => {
            is_locked(state, change, owner)
        }
        ChangeStep::Give => state.first_free(modes.ids).is_none(),
        _ => false,
    };
    state.is_at_work(change.by) && !waits
}

/// Returns `true` if the run-queue lock of the owner's CPU is held.
fn is_locked(state: &State, change: &Change, owner: u8) -> bool {
    let cpu = if change.to_cpus {
        match state.thread(owner).place {
            Place::Running(cpu) | Place::Leaving(cpu) => Some(cpu),
            Place::Nowhere | Place::Waiting => None,
        }
    } else {
        Some(owner)
    };
    cpu.is_some_and(|cpu| state.cpu(cpu).step != CpuStep::Rest)
}

/// Goes to the next owner.
pub(super) fn pick(state: &mut State, owner: u8) {
    let change = state.change.as_mut().expect("a change is in flight");
    change.todo &= !(1 << owner);
    change.step = ChangeStep::Fix(owner);
}

/// Takes the next step.
pub(super) fn step(modes: &Modes, state: &mut State) {
    let mut change = state.change.expect("a change is in flight");
    change.step = match change.step {
        ChangeStep::Drop(id) => {
            state.clear(id);
            after_count(state, &change)
        }
        ChangeStep::StoreMode => store_mode(modes, state, &mut change),
        ChangeStep::StoreTransit => {
            state.mode.transit = true;
            ChangeStep::Next
        }
        ChangeStep::Next => {
            state.mode.transit = false;
            give_or_end(&change)
        }
        ChangeStep::Fix(owner) => {
            let seen = look(state, &change, owner);
            if modes.flaw == Some(Flaw::Unlocked) {
                seen
            } else {
                act(modes, state, seen);
                ChangeStep::Next
            }
        }
        ChangeStep::Act { .. } => {
            act(modes, state, change.step);
            ChangeStep::Next
        }
        ChangeStep::Give => {
            let first = state.first_free(state.max_cids);
            let id = first.or_else(|| state.first_free(modes.ids)).expect("the step was enabled");
            state.bitmap |= 1 << id;
            state.thread_mut(change.child.expect("only forks give")).cid = Cid::Own(id);
            ChangeStep::End
        }
        ChangeStep::End => {
            if let Some(child) = change.child {
                state.thread_mut(child).place = Place::Waiting;
            }
            state.change = None;
            return;
        }
    };
    state.change = Some(change);
}

/// Stores the new mode, together with the transition bit unless a flaw separates them.
fn store_mode(modes: &Modes, state: &mut State, change: &mut Change) -> ChangeStep {
    state.mode.per_cpu = change.to_cpus;
    change.todo = if change.to_cpus {
        (0..).zip(&state.threads).filter(|(_, t)| t.active).fold(0, |set, (nr, _)| set | 1 << nr)
    } else {
        (1 << modes.cpus) - 1
    };
    match modes.flaw {
        Some(Flaw::TwoWords) => ChangeStep::StoreTransit,
        Some(Flaw::NoTransit) => ChangeStep::Next,
        _ => {
            state.mode.transit = true;
            ChangeStep::Next
        }
    }
}

/// Returns the step with the properties of an owner: its ID, and the running thread that uses it.
fn look(state: &State, change: &Change, owner: u8) -> ChangeStep {
    let running = |thread: &ThreadNr| matches!(state.thread(*thread).place, Place::Running(_));
    let (id, running) = if change.to_cpus {
        let id = match state.thread(owner).cid {
            Cid::Own(id) => Some(id),
            Cid::Unset | Cid::Transit(_) | Cid::OfCpu(_) => None,
        };
        (id, Some(owner).filter(running))
    } else {
        let user = state.user_on(owner);
        let own = user.and_then(|user| match state.thread(user).cid {
            Cid::Own(id) => Some(id),
            Cid::Unset | Cid::Transit(_) | Cid::OfCpu(_) => None,
        });
        (state.cpu(owner).owned.or(own), user)
    };
    ChangeStep::Act { owner, id, running }
}

/// Lends the ID of an owner of the old kind to its user until that is switched out, or frees it.
fn act(modes: &Modes, state: &mut State, seen: ChangeStep) {
    let ChangeStep::Act { owner, id, running } = seen else { unreachable!("it was looked at") };
    let Some(id) = id else { return };
    let to_cpus = state.change.expect("a change is in flight").to_cpus;
    if !to_cpus {
        state.cpu_mut(owner).owned = None;
    }
    match running {
        Some(user) if modes.flaw == Some(Flaw::NoTransit) => keep(state, user, id, to_cpus),
        Some(user) => state.thread_mut(user).cid = Cid::Transit(id),
        None => {
            if to_cpus {
                state.thread_mut(owner).cid = Cid::Unset;
            }
            state.clear(id);
        }
    }
}

/// Gives the ID to the new owner at once, without a transition.
fn keep(state: &mut State, user: ThreadNr, id: Id, to_cpus: bool) {
    state.thread_mut(user).cid = if to_cpus { Cid::OfCpu(id) } else { Cid::Own(id) };
    if let (true, Place::Running(cpu)) = (to_cpus, state.thread(user).place) {
        state.cpu_mut(cpu).owned = Some(id);
    }
}
