//! Threads that use the value of the ID they run with.

use super::state::{At, Fault, Flaw, Lock, Taking, Use, Write};
use super::{Local, State};
use crate::memory::Memory;
use crate::structure::state::{CpuNr, Due, Id};

/// Takes the next step of a thread.
pub(super) fn step(model: &Local, state: &mut State, due: Due<Taking>) -> Option<At> {
    let Due { nr, cpu, work } = due;
    let At::Shard(id, at) = work.at else {
        return state.table[usize::from(cpu)].map(|id| At::Shard(id, first(model)));
    };
    let next = match at {
        Use::Look => look(model, state, id),
        Use::Load => (state.lock_seen_on(cpu, id) == work.op).then(|| loaded(model)),
        Use::Commit => {
            model.store(state, cpu, Write { id, lock: Lock::Held });
            took(state, nr, id);
            Some(own(state, id, work.op))
        }
        Use::Exchange => exchange(model, state, due, id),
        Use::LookAgain => {
            model.flush_all(state, cpu);
            let closed = state.shard(id).closed;
            Some(if closed { Use::PutBack } else { own(state, id, work.op) })
        }
        Use::PutBack => {
            model.store(state, cpu, Write { id, lock: work.op });
            None
        }
        Use::Make => {
            if state.shard(id).value {
                state.fault = Some(Fault::Lost);
            }
            state.shard_mut(id).value = true;
            Some(Use::Mark)
        }
        Use::Mark => {
            if model.memory == Memory::Fifo {
                model.flush_all(state, cpu);
            }
            state.mask |= 1 << id;
            Some(Use::Inside)
        }
        Use::Inside => {
            model.store(state, cpu, Write { id, lock: Lock::Ready });
            None
        }
    };
    next.map(|at| At::Shard(id, at))
}

/// Returns the first step that concerns the shard.
fn first(model: &Local) -> Use {
    match model.flaw {
        Some(Flaw::StateFirst) => Use::Load,
        Some(Flaw::NoFirstLook) => Use::Exchange,
        _ => Use::Look,
    }
}

/// Returns the step after the look; `None` if the shard is closed and the operation ends elsewhere.
fn look(model: &Local, state: &State, id: Id) -> Option<Use> {
    (!state.shard(id).closed).then_some(match model.protocol {
        Taking::Section if model.flaw == Some(Flaw::StateFirst) => Use::Commit,
        Taking::Section => Use::Load,
        Taking::Exchange => Use::Exchange,
    })
}

/// Returns the step after the lock was found as expected.
fn loaded(model: &Local) -> Use {
    if model.flaw == Some(Flaw::StateFirst) { Use::Look } else { Use::Commit }
}

fn exchange(model: &Local, state: &mut State, due: Due<Taking>, id: Id) -> Option<Use> {
    let Due { nr, cpu, work } = due;
    // An atomic read-modify-write comes after the CPU's own stores to its place, at least.
    if model.memory == Memory::Fifo {
        model.flush_all(state, cpu);
    }
    while let Some(index) = waiting(state, cpu, id) {
        model.flush(state, cpu, index);
    }
    if state.shard(id).lock != work.op {
        return None;
    }
    state.shard_mut(id).lock = Lock::Held;
    took(state, nr, id);
    let looks_again = model.flaw != Some(Flaw::NoSecondLook);
    Some(if looks_again { Use::LookAgain } else { own(state, id, work.op) })
}

fn waiting(state: &State, cpu: CpuNr, id: Id) -> Option<usize> {
    state.buffers[usize::from(cpu)].iter().position(|write| write.id == id)
}

/// Records that a thread has taken a lock.
fn took(state: &mut State, nr: usize, id: Id) {
    if state.is_waited_for(id) {
        if state.threads[nr].overtook {
            state.fault = Some(Fault::Starved);
        }
        state.threads[nr].overtook = true;
    }
}

/// Gives a shard to a thread.
fn own(state: &mut State, id: Id, found: Lock) -> Use {
    if state.is_waited_for(id) {
        state.fault = state.fault.or(Some(Fault::Overtaken));
    }
    if found == Lock::None {
        return Use::Make;
    }
    if !state.shard(id).value {
        state.fault = Some(Fault::Revived);
    }
    Use::Inside
}
