//! Threads that use the value of the ID they run with.

use super::protocol::{Flaw, Local, Taking};
use super::state::{At, CpuNr, Fault, Id, Lock, State, Thread, Work, Write};
use crate::memory::Memory;

/// Whether a thread can take its next step.
pub(super) fn can_step(model: &Local, state: &State, nr: usize) -> bool {
    let Thread { on: Some(cpu), work: Some(work), .. } = state.threads[nr] else { return false };
    let stores = match work.at {
        At::Commit(_) | At::PutBack(_) | At::Inside(_) => true,
        At::Look(id) if model.flaw == Some(Flaw::Waits) => return !state.shard(id).closed,
        _ => false,
    };
    !(stores && state.buffers[usize::from(cpu)].is_full())
}

/// Whether the next step of a thread is to make a value, and may fail.
pub(super) fn can_fail(state: &State, nr: usize) -> bool {
    let Thread { on: Some(cpu), work: Some(work), .. } = state.threads[nr] else { return false };
    matches!(work.at, At::Make(_)) && !state.buffers[usize::from(cpu)].is_full()
}

/// Takes the next step of a thread.
pub(super) fn step(model: &Local, state: &mut State, nr: usize) {
    let Thread { on: Some(cpu), work: Some(work), .. } = state.threads[nr] else {
        unreachable!("only running threads step")
    };
    let next = match work.at {
        At::Start => state.table[usize::from(cpu)].map(|id| first(model, id)),
        At::Look(id) => look(model, state, id),
        At::Load(id) => (state.lock_seen_on(cpu, id) == work.expects).then(|| loaded(model, id)),
        At::Commit(id) => {
            store(model, state, cpu, Write { id, lock: Lock::Held });
            took(state, nr, id);
            Some(own(state, id, work.expects))
        }
        At::Exchange(id) => exchange(model, state, nr, cpu, id, work.expects),
        At::LookAgain(id) => {
            flush_all(state, cpu);
            let closed = state.shard(id).closed;
            Some(if closed { At::PutBack(id) } else { own(state, id, work.expects) })
        }
        At::PutBack(id) => {
            store(model, state, cpu, Write { id, lock: work.expects });
            None
        }
        At::Make(id) => {
            if state.shard(id).value {
                state.fault = Some(Fault::Lost);
            }
            state.shard_mut(id).value = true;
            Some(At::Mark(id))
        }
        At::Mark(id) => {
            if model.memory == Memory::Fifo {
                flush_all(state, cpu);
            }
            state.mask |= 1 << id;
            Some(At::Inside(id))
        }
        At::Inside(id) => {
            store(model, state, cpu, Write { id, lock: Lock::Ready });
            None
        }
    };
    state.threads[nr].work = next.map(|at| Work { at, ..work });
}

/// The first step that concerns the shard.
fn first(model: &Local, id: Id) -> At {
    match model.flaw {
        Some(Flaw::StateFirst) => At::Load(id),
        Some(Flaw::NoFirstLook) => At::Exchange(id),
        _ => At::Look(id),
    }
}

/// None: the shard is closed; the operation ends elsewhere.
fn look(model: &Local, state: &State, id: Id) -> Option<At> {
    (!state.shard(id).closed).then_some(match model.taking {
        Taking::Section if model.flaw == Some(Flaw::StateFirst) => At::Commit(id),
        Taking::Section => At::Load(id),
        Taking::Exchange => At::Exchange(id),
    })
}

/// The lock is as expected.
fn loaded(model: &Local, id: Id) -> At {
    if model.flaw == Some(Flaw::StateFirst) { At::Look(id) } else { At::Commit(id) }
}

fn exchange(
    model: &Local,
    state: &mut State,
    nr: usize,
    cpu: CpuNr,
    id: Id,
    expects: Lock,
) -> Option<At> {
    // An atomic read-modify-write comes after the CPU's own stores to its place, at least.
    if model.memory == Memory::Fifo {
        flush_all(state, cpu);
    }
    let waiting =
        |state: &State| state.buffers[usize::from(cpu)].iter().position(|write| write.id == id);
    while let Some(index) = waiting(state) {
        flush(state, cpu, index);
    }
    if state.shard(id).lock != expects {
        return None;
    }
    state.shard_mut(id).lock = Lock::Held;
    took(state, nr, id);
    Some(if model.flaw == Some(Flaw::NoSecondLook) {
        own(state, id, expects)
    } else {
        At::LookAgain(id)
    })
}

/// A thread has taken a lock.
fn took(state: &mut State, nr: usize, id: Id) {
    if state.visitors.iter().any(|visitor| visitor.waits_for(id)) {
        if state.threads[nr].overtook {
            state.fault = Some(Fault::Starved);
        }
        state.threads[nr].overtook = true;
    }
}

/// A shard becomes a thread's.
fn own(state: &mut State, id: Id, found: Lock) -> At {
    if state.visitors.iter().any(|visitor| visitor.waits_for(id)) {
        state.fault = state.fault.or(Some(Fault::Overtaken));
    }
    if found == Lock::None {
        return At::Make(id);
    }
    if !state.shard(id).value {
        state.fault = Some(Fault::Revived);
    }
    At::Inside(id)
}

/// No value could be made.
pub(super) fn fail(model: &Local, state: &mut State, nr: usize) {
    let Thread { on: Some(cpu), work: Some(Work { at: At::Make(id), .. }), .. } = state.threads[nr]
    else {
        unreachable!("only what makes a value fails")
    };
    store(model, state, cpu, Write { id, lock: Lock::None });
    state.threads[nr].work = None;
}

fn store(model: &Local, state: &mut State, cpu: CpuNr, write: Write) {
    match model.memory {
        Memory::Sequential => state.perform(write),
        Memory::Fifo | Memory::Unordered => state.buffers[usize::from(cpu)].push(write),
    }
}

/// A waiting store of a CPU becomes visible.
pub(super) fn flush(state: &mut State, cpu: CpuNr, index: usize) {
    let write = state.buffers[usize::from(cpu)].remove(index);
    state.perform(write);
}

/// A full barrier on a CPU.
pub(super) fn flush_all(state: &mut State, cpu: CpuNr) {
    let writes = state.buffers[usize::from(cpu)].take();
    writes.for_each(|write| state.perform(write));
}

/// What a preemption, a migration and a fence do to a thread in a critical section: it begins
/// again.
pub(super) fn abort(model: &Local, thread: &mut Thread) {
    let Some(work) = &mut thread.work else { return };
    let in_section = matches!(work.at, At::Look(_) | At::Load(_) | At::Commit(_));
    if in_section && model.taking == Taking::Section {
        work.at = At::Start;
    }
}

/// A thread loses its CPU. A context switch is a full barrier.
pub(super) fn preempt(model: &Local, state: &mut State, nr: usize) {
    abort(model, &mut state.threads[nr]);
    if let Some(cpu) = state.threads[nr].on.take() {
        flush_all(state, cpu);
    }
}

/// A fence reaches a CPU: a full barrier, and the section in flight there is aborted.
pub(super) fn fence(model: &Local, state: &mut State, cpu: CpuNr) {
    flush_all(state, cpu);
    for thread in state.threads.iter_mut().filter(|thread| thread.on == Some(cpu)) {
        abort(model, thread);
    }
}
