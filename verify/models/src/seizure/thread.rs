//! Threads that use the block of the ID they run with: critical sections, activation.

use super::ownership;
use super::protocol::{Flaw, Seizure};
use super::state::{
    At, Block, CAPACITY, CpuNr, Fault, Id, Op, State, Thread, Value, Word, Work, Write,
};
use crate::memory::Memory;

/// Whether a thread can take its next step.
pub(super) fn can_step(model: &Seizure, state: &State, nr: usize) -> bool {
    let Thread { on: Some(cpu), work: Some(work) } = state.threads[nr] else { return false };
    let stores = match work.at {
        At::Slot(..) => matches!(work.op, Op::Push(_)),
        At::Commit { .. } | At::Own(_) | At::Publish(_) => true,
        At::Load(id) if model.flaw == Some(Flaw::Waits) => {
            return !state.block_seen_on(cpu, id).word.seized;
        }
        At::Start | At::Load(_) | At::Begin | At::Check(_) | At::Mark(_) => false,
    };
    !(stores && state.buffers[usize::from(cpu)].is_full())
}

/// Takes the next step of a thread.
pub(super) fn step(model: &Seizure, state: &mut State, nr: usize) {
    let Thread { on: Some(cpu), work: Some(work) } = state.threads[nr] else {
        unreachable!("only running threads step")
    };
    let next = match work.at {
        At::Start => begin_section(state, cpu, At::Load),
        At::Begin => begin_section(state, cpu, At::Check),
        At::Load(id) => look(model, work.op, id, &state.block_seen_on(cpu, id)),
        At::Slot(id, items) => Some(use_slot(model, state, cpu, work.op, id, items)),
        At::Commit { id, value, popped } => {
            commit(model, state, cpu, id, Word::of(value));
            popped.into_iter().for_each(|item| state.hand_out(item));
            None
        }
        at => Some(activate(model, state, cpu, at)),
    };
    // A commit has put the item inside; any other end leaves it to the thread that wanted to push
    // it.
    if let (Op::Push(item), None) = (work.op, next) {
        if !matches!(work.at, At::Commit { .. }) {
            state.hand_out(item);
        }
    }
    state.threads[nr].work = next.map(|at| Work { at, ..work });
}

/// A CPU without an ID cannot begin a section.
fn begin_section(state: &State, cpu: CpuNr, first: fn(Id) -> At) -> Option<At> {
    state.table[usize::from(cpu)].map(first)
}

/// What the word says decides. None: the block is unsuitable; the operation ends elsewhere.
fn look(model: &Seizure, op: Op, id: Id, block: &Block) -> Option<At> {
    match (op, block.word) {
        (_, Word { value: Value::Inactive, seized: false }) => Some(match model.flaw {
            Some(Flaw::MarkFirst) => At::Mark(id),
            _ => At::Begin,
        }),
        (Op::Push(_), Word { value: Value::Items(items), seized: false }) => {
            (usize::from(items) < CAPACITY).then_some(At::Slot(id, items))
        }
        (Op::Pop, Word { value: Value::Items(items), seized: false }) => {
            (items > 0).then_some(At::Slot(id, items))
        }
        _ => None,
    }
}

fn use_slot(model: &Seizure, state: &mut State, cpu: CpuNr, op: Op, id: Id, items: u8) -> At {
    match op {
        Op::Push(item) => {
            store(model, state, cpu, Write::Slot(id, items, item));
            At::Commit { id, value: Value::Items(items + 1), popped: None }
        }
        Op::Pop => {
            let popped = state.block_seen_on(cpu, id).slots[usize::from(items) - 1];
            At::Commit { id, value: Value::Items(items - 1), popped }
        }
    }
}

/// The last step of a critical section.
fn commit(model: &Seizure, state: &mut State, cpu: CpuNr, id: Id, word: Word) {
    if ownership::owners(model, state, id) > 0 {
        state.fault = Some(Fault::Intruded);
    }
    store(model, state, cpu, Write::Word(id, word));
}

fn activate(model: &Seizure, state: &mut State, cpu: CpuNr, at: At) -> At {
    let empty = Word::of(Value::Items(0));
    let mark_first = model.flaw == Some(Flaw::MarkFirst);
    match at {
        At::Check(id) => {
            let inactive = state.block_seen_on(cpu, id).word == Word::of(Value::Inactive);
            if inactive { At::Own(id) } else { At::Start }
        }
        At::Own(id) => {
            let word = if mark_first { empty } else { Word::seized(Value::Activating) };
            commit(model, state, cpu, id, word);
            if mark_first { At::Start } else { At::Mark(id) }
        }
        At::Mark(id) => {
            if model.memory == Memory::Fifo {
                flush_all(model, state, cpu);
            }
            state.mask |= 1 << id;
            if mark_first { At::Begin } else { At::Publish(id) }
        }
        At::Publish(id) => {
            store(model, state, cpu, Write::Word(id, empty));
            At::Start
        }
        _ => unreachable!("no step of an activation: {at:?}"),
    }
}

fn store(model: &Seizure, state: &mut State, cpu: CpuNr, write: Write) {
    match model.memory {
        Memory::Sequential => state.perform(write),
        Memory::Fifo | Memory::Unordered => state.buffers[usize::from(cpu)].push(write),
    }
}

/// A waiting store of a CPU becomes visible.
pub(super) fn flush(model: &Seizure, state: &mut State, cpu: CpuNr, index: usize) {
    let write = state.buffers[usize::from(cpu)].remove(index);
    perform(model, state, write);
}

/// A full barrier on a CPU.
pub(super) fn flush_all(model: &Seizure, state: &mut State, cpu: CpuNr) {
    let writes = state.buffers[usize::from(cpu)].take();
    writes.for_each(|write| perform(model, state, write));
}

fn perform(model: &Seizure, state: &mut State, write: Write) {
    if let Write::Word(id, _) = write {
        if state.drainers.iter().any(|drainer| ownership::owns(model, drainer, id)) {
            state.fault = Some(Fault::Intruded);
        }
    }
    state.perform(write);
}

/// What a preemption, a migration and a fence do to a thread in a critical section: it begins
/// again.
pub(super) fn abort(model: &Seizure, thread: &mut Thread) {
    let Some(work) = &mut thread.work else { return };
    work.at = match work.at {
        At::Load(_) | At::Slot(..) | At::Commit { .. } => At::Start,
        At::Check(_) | At::Own(_) if model.flaw != Some(Flaw::Unprotected) => At::Begin,
        at => at,
    };
}

/// A thread loses its CPU. A context switch is a full barrier.
pub(super) fn preempt(model: &Seizure, state: &mut State, nr: usize) {
    abort(model, &mut state.threads[nr]);
    if let Some(cpu) = state.threads[nr].on.take() {
        flush_all(model, state, cpu);
    }
}

/// A fence reaches a CPU: a full barrier, and the section in flight there is aborted.
pub(super) fn fence(model: &Seizure, state: &mut State, cpu: CpuNr) {
    flush_all(model, state, cpu);
    for thread in state.threads.iter_mut().filter(|thread| thread.on == Some(cpu)) {
        abort(model, thread);
    }
}
