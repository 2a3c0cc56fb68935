//! A thread that adds: the critical section, the slow path, the signal handler.

use super::protocol::{Lock, Table};
use super::state::{Add, At, CpuNr, Fault, Id, Read, State, TheftStep, Thread};

/// Returns `true` if a thread can take its next step without a choice.
pub(super) fn can_step(table: &Table, state: &State, nr: usize) -> bool {
    let Thread { on, add, .. } = state.threads[nr];
    on.is_some()
        && match add.at {
            At::Gone => false,
            At::TryLock => table.lock == Lock::Try || !state.locked,
            At::LoadEntry(cpu) => state.table[usize::from(cpu)].is_some(),
            _ => true,
        }
}

/// Returns the CPU for which a thread in the slow path must choose an ID.
pub(super) fn chooses_for(state: &State, nr: usize) -> Option<CpuNr> {
    match state.threads[nr] {
        Thread { on: Some(_), add: Add { at: At::LoadEntry(cpu), .. }, .. } => {
            state.table[usize::from(cpu)].is_none().then_some(cpu)
        }
        _ => None,
    }
}

/// Takes the next step of a thread.
pub(super) fn step(table: &Table, state: &mut State, nr: usize) {
    let Thread { on, add, .. } = state.threads[nr];
    let on = on.expect("only running threads step");
    let next = match add.at {
        At::Start | At::Unarmed(_) | At::Armed | At::HasCpu(_) | At::HasId(_) => {
            Some(fast_path(table, state, on, add.at))
        }
        At::Loaded(read) => {
            state.store(read);
            land(state, nr);
            None
        }
        At::Shared => {
            land(state, nr);
            None
        }
        At::Stealing(mut theft) => {
            if matches!(theft.step, TheftStep::Store { .. }) {
                land(state, nr);
            }
            Some(if table.order.advance(state, &mut theft) {
                At::Stealing(theft)
            } else {
                At::Unlock
            })
        }
        At::Unblock { denied: false } if state.threads[nr].add.landed => None,
        at => Some(slow_path(table, state, on, at)),
    };
    match next {
        Some(at) => state.threads[nr].add.at = at,
        None => finish(state, nr),
    }
}

fn fast_path(table: &Table, state: &State, on: CpuNr, at: At) -> At {
    match at {
        At::Start if table.cpu_inside => At::Armed,
        At::Start => At::Unarmed(on),
        At::Unarmed(cpu) => At::HasCpu(cpu),
        At::Armed => At::HasCpu(on),
        At::HasCpu(cpu) => match state.table[usize::from(cpu)] {
            Some(id) => At::HasId(id),
            None if table.blocks_signals => At::Block,
            None => At::TryLock,
        },
        At::HasId(id) => At::Loaded(Read { id, fresh: true }),
        _ => unreachable!("no step of the fast path: {at:?}"),
    }
}

fn slow_path(table: &Table, state: &mut State, on: CpuNr, at: At) -> At {
    match at {
        At::Block => At::TryLock,
        At::TryLock if state.locked => leave_slow_path(table, true),
        At::TryLock => {
            state.locked = true;
            At::LoadCpu
        }
        At::LoadCpu => At::LoadEntry(on),
        At::LoadEntry(_) => At::Unlock,
        At::Install(cpu, id) => {
            state.install(cpu, id);
            At::Unlock
        }
        At::Unlock => {
            state.locked = false;
            At::Unblock { denied: false }
        }
        At::Unblock { denied: true } => At::Shared,
        At::Unblock { denied: false } => At::Start,
        _ => unreachable!("no step of the slow path: {at:?}"),
    }
}

/// Returns the step after the slow path. If signals are not blocked, there is nothing to unblock.
fn leave_slow_path(table: &Table, denied: bool) -> At {
    if table.blocks_signals { At::Unblock { denied } } else { At::Shared }
}

/// Takes a free ID in the slow path.
pub(super) fn take_free(state: &mut State, nr: usize, cpu: CpuNr, id: Id) {
    state.free &= !(1 << id);
    state.threads[nr].add.at = At::Install(cpu, id);
}

/// Decides in the slow path to steal an ID from a CPU.
pub(super) fn steal(table: &Table, state: &mut State, nr: usize, cpu: CpuNr, victim: CpuNr) {
    let id = state.table[usize::from(victim)].expect("victims have an ID");
    state.threads[nr].add.at = At::Stealing(table.order.begin(victim, id, Some(cpu)));
}

/// Refuses the fence to the slow path, which leaves without an ID.
pub(super) fn refuse(table: &Table, state: &mut State, nr: usize) {
    if let At::Stealing(theft) = state.threads[nr].add.at {
        table.order.refuse(state, &theft);
    }
    state.threads[nr].add.at = At::Unlock;
}

/// Interrupts a thread by a signal; its handler adds.
pub(super) fn interrupt(state: &mut State, nr: usize) {
    let thread = &mut state.threads[nr];
    thread.abort();
    thread.interrupted = Some(std::mem::replace(&mut thread.add, Add::NEW));
}

/// Stores the increment of the add in progress.
fn land(state: &mut State, nr: usize) {
    if std::mem::replace(&mut state.threads[nr].add.landed, true) {
        state.fault = Some(Fault::Doubled);
    }
}

/// Ends the add in progress; a handler returns.
fn finish(state: &mut State, nr: usize) {
    if !state.threads[nr].add.landed {
        state.fault = Some(Fault::Missed);
    }
    let thread = &mut state.threads[nr];
    thread.add = thread.interrupted.take().unwrap_or(Add::NEW);
}
