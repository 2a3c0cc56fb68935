//! Threads that use the block of the ID they run with: critical sections, activation.

use super::state::{At, Block, CAPACITY, Fault, Flaw, Op, Stack, Value, Word, Write};
use super::{Seizure, State, ownership};
use crate::memory::Memory;
use crate::structure::state::{CpuNr, Due, Id};

/// Takes the next step of a thread.
pub(super) fn step(model: &Seizure, state: &mut State, due: Due<Stack>) -> Option<At> {
    let Due { cpu, work, .. } = due;
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
    next
}

/// Begins a section; a CPU without an ID cannot.
fn begin_section(state: &State, cpu: CpuNr, first: fn(Id) -> At) -> Option<At> {
    state.table[usize::from(cpu)].map(first)
}

/// Returns the next step, depending on the word. `None`: the block is unsuitable, and the operation
/// ends elsewhere.
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
            model.store(state, cpu, Write::Slot(id, items, item));
            At::Commit { id, value: Value::Items(items + 1), popped: None }
        }
        Op::Pop => {
            let popped = state.block_seen_on(cpu, id).slots[usize::from(items) - 1];
            At::Commit { id, value: Value::Items(items - 1), popped }
        }
    }
}

/// Performs the last step of a critical section.
fn commit(model: &Seizure, state: &mut State, cpu: CpuNr, id: Id, word: Word) {
    if ownership::owners(model, state, id) > 0 {
        state.fault = Some(Fault::Intruded);
    }
    model.store(state, cpu, Write::Word(id, word));
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
                model.flush_all(state, cpu);
            }
            state.mask |= 1 << id;
            if mark_first { At::Begin } else { At::Publish(id) }
        }
        At::Publish(id) => {
            model.store(state, cpu, Write::Word(id, empty));
            At::Start
        }
        _ => unreachable!("no step of an activation: {at:?}"),
    }
}

/// Makes a store of a thread visible.
pub(super) fn perform(model: &Seizure, state: &mut State, write: Write) {
    if let Write::Word(id, _) = write {
        if state.visitors.iter().any(|visitor| ownership::owns(model, visitor, id)) {
            state.fault = Some(Fault::Intruded);
        }
    }
    state.perform(write);
}
