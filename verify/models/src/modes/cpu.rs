//! The context switch, step by step.

use super::protocol::{Flaw, Modes};
use super::state::{Cid, CpuStep, Mode, Place, State};
use crate::kernel::state::{CpuNr, Id, ThreadNr};

/// Takes the run-queue lock; the next thread is current from here on.
pub(super) fn switch(state: &mut State, nr: CpuNr, next: Option<ThreadNr>) {
    let mut step = CpuStep::In;
    if let Some(previous) = state.cpu(nr).current {
        let thread = state.thread_mut(previous);
        thread.place = Place::Leaving(nr);
        match thread.cid {
            Cid::Transit(_) => step = CpuStep::Out,
            Cid::OfCpu(_) => thread.cid = Cid::Unset,
            Cid::Unset | Cid::Own(_) => {}
        }
    }
    state.cpu_mut(nr).current = next;
    if let Some(next) = next {
        state.thread_mut(next).place = Place::Running(nr);
    }
    state.cpu_mut(nr).step = step;
    if step == CpuStep::In {
        skip_or_go_in(state, nr);
    }
}

/// Returns `true` if the switch in progress can take its next step: it spins until an ID is free.
pub(super) fn can_step(modes: &Modes, state: &State, nr: CpuNr) -> bool {
    match state.cpu(nr).step {
        CpuStep::Rest => false,
        CpuStep::Take(_) => state.first_free(modes.ids).is_some(),
        _ => true,
    }
}

/// Takes the next step of the switch in progress.
pub(super) fn step(modes: &Modes, state: &mut State, nr: CpuNr) {
    match state.cpu(nr).step {
        CpuStep::Rest => unreachable!("nothing in progress"),
        CpuStep::Out => out(modes, state, nr),
        CpuStep::Drop(id) => {
            state.clear(id);
            skip_or_go_in(state, nr);
        }
        CpuStep::In => incoming(state, nr),
        CpuStep::Take(mode) => {
            let first = state.first_free(state.max_cids);
            let id = first.or_else(|| state.first_free(modes.ids)).expect("the step was enabled");
            state.bitmap |= 1 << id;
            hold(state, nr, id, mode, None);
        }
        CpuStep::Converge { mode, from, below } => match state.first_free(below) {
            Some(id) => {
                state.bitmap |= 1 << id;
                hold(state, nr, id, mode, Some(from));
            }
            None => hold(state, nr, from, mode, None),
        },
        CpuStep::Free(id) => {
            state.clear(id);
            complete(state, nr);
        }
    }
}

/// Handles a previous thread whose ID was in transit: it goes to the owner that the mode requires,
/// or is freed.
fn out(modes: &Modes, state: &mut State, nr: CpuNr) {
    let previous = leaving(state, nr).expect("somebody is switched out");
    let id = state.thread(previous).cid.id().expect("an ID in transit");
    let keeps = !state.mode.transit || modes.flaw == Some(Flaw::KeptInTransit);
    if keeps && id < state.max_cids {
        let to_cpu = state.mode.per_cpu;
        state.thread_mut(previous).cid = if to_cpu { Cid::Unset } else { Cid::Own(id) };
        if to_cpu {
            state.cpu_mut(nr).owned = Some(id);
        }
        skip_or_go_in(state, nr);
    } else {
        state.thread_mut(previous).cid = Cid::Unset;
        state.cpu_mut(nr).step = CpuStep::Drop(id);
    }
}

fn leaving(state: &State, nr: CpuNr) -> Option<ThreadNr> {
    (0..).zip(&state.threads).find(|(_, t)| t.place == Place::Leaving(nr)).map(|(nr, _)| nr)
}

/// Skips the ID if the current thread is not a user of the process (any more).
fn skip_or_go_in(state: &mut State, nr: CpuNr) {
    if state.user_on(nr).is_some() {
        state.cpu_mut(nr).step = CpuStep::In;
    } else {
        complete(state, nr);
    }
}

/// Chooses the ID for the next thread, depending on its present owners and the required one.
fn incoming(state: &mut State, nr: CpuNr) {
    let (mode, below) = (state.mode, state.max_cids);
    let settled = Mode { transit: false, ..mode };
    let thread = state.user_on(nr).expect("only users come in");
    let (own, cpus) = (state.thread(thread).cid.owned(), state.cpu(nr).owned);
    match (own, cpus) {
        // An ID that the owner already has is not marked: it is the owner's in the new mode, too.
        (Some(id), None) if !mode.per_cpu => use_or_converge(state, nr, id, settled, below),
        (None, Some(id)) if mode == settled && mode.per_cpu => {
            use_or_converge(state, nr, id, settled, below);
        }
        (Some(id), None) | (None, Some(id)) => hold(state, nr, id, mode, None),
        (Some(own), Some(cpus)) if mode.per_cpu => hold(state, nr, cpus, mode, Some(own)),
        (Some(own), Some(cpus)) => hold(state, nr, own, mode, Some(cpus)),
        (None, None) => state.cpu_mut(nr).step = CpuStep::Take(mode),
    }
}

fn use_or_converge(state: &mut State, nr: CpuNr, id: Id, mode: Mode, below: u8) {
    if id < below {
        hold(state, nr, id, mode, None);
    } else {
        state.cpu_mut(nr).step = CpuStep::Converge { mode, from: id, below };
    }
}

/// Gives the ID to the current thread, which holds it from here on; a surplus ID is freed.
fn hold(state: &mut State, nr: CpuNr, id: Id, mode: Mode, too_many: Option<Id>) {
    let thread = state.user_on(nr).expect("only users hold IDs");
    let of_cpu = mode.per_cpu && !mode.transit;
    state.cpu_mut(nr).owned = of_cpu.then_some(id);
    state.thread_mut(thread).cid = match mode {
        _ if of_cpu => Cid::OfCpu(id),
        Mode { transit: true, .. } => Cid::Transit(id),
        Mode { transit: false, .. } => Cid::Own(id),
    };
    match too_many {
        Some(other) => state.cpu_mut(nr).step = CpuStep::Free(other),
        None => complete(state, nr),
    }
}

/// Releases the run-queue lock; the previous thread is off this CPU for good.
fn complete(state: &mut State, nr: CpuNr) {
    state.cpu_mut(nr).step = CpuStep::Rest;
    if let Some(previous) = leaving(state, nr) {
        let exits = state.change.is_some_and(|change| change.by == previous);
        let thread = state.thread_mut(previous);
        thread.place = if thread.active || exits { Place::Waiting } else { Place::Nowhere };
    }
}
