//! Steps and states in words.

use super::state::{At, Flaw, Item, Op, SeizeStep, Stack, Value, Word, Write};
use super::{Seizure, State};
use crate::structure::state::{CpuNr, Hold, Id, Work};

pub(super) fn what(op: Op) -> String {
    match op {
        Op::Push(item) => format!("push {}", name(item)),
        Op::Pop => "pop".into(),
    }
}

/// Items are letters, so that they are not taken for IDs.
fn name(item: Item) -> char {
    char::from(b'x' + item)
}

pub(super) fn thread_step(
    model: &Seizure,
    before: &State,
    cpu: CpuNr,
    work: Work<Stack>,
) -> String {
    let Work { op, at } = work;
    let sees = |id| word(before.block_seen_on(cpu, id).word);
    match at {
        At::Start | At::Begin => match before.table[usize::from(cpu)] {
            Some(id) => format!("section: load the ID: {id}"),
            None => "section: load the ID: UNSET, leave".into(),
        },
        At::Load(id) | At::Check(id) => format!("load word {id}: {}", sees(id)),
        At::Slot(id, items) => match op {
            Op::Push(item) => format!("store {} into slot {items} of {id}", name(item)),
            Op::Pop => {
                let slot = items - 1;
                let item = before.block_seen_on(cpu, id).slots[usize::from(slot)];
                format!("load slot {slot} of {id}: {}", item.map_or('-', name))
            }
        },
        At::Commit { id, value, .. } => format!("store word {id} = {}: commit", text(value)),
        At::Own(id) if model.flaw == Some(Flaw::MarkFirst) => {
            format!("store word {id} = {}: commit", empty())
        }
        At::Own(id) => format!("store word {id} = ACTIVATING|SEIZED: commit"),
        At::Mark(id) => format!("fetch_or bit {id} of the mask"),
        At::Publish(id) => format!("store word {id} = {}", empty()),
    }
}

fn empty() -> String {
    text(Value::Items(0))
}

pub(super) fn seize_step(before: &State, hold: Hold<Stack>) -> String {
    let Hold { id, step, known: value, .. } = hold;
    let (now, seized) = (before.block(id).word, Word::seized(value));
    let outcome = |good| if good { "yes" } else { "no, once more" };
    match step {
        SeizeStep::Load => format!("load word {id}: {}", word(now)),
        SeizeStep::Exchange => {
            let good = outcome(now == Word::of(value));
            format!("CAS word {id} {} -> {}: {good}", text(value), word(seized))
        }
        SeizeStep::Overwrite => format!("store word {id} = {}", word(seized)),
        SeizeStep::Membarrier => String::new(),
        SeizeStep::Confirm => {
            format!("is word {id} still {}? {}", word(seized), outcome(now == seized))
        }
        SeizeStep::Take => match value {
            Value::Items(items) => {
                let slots = before.block(id).slots;
                let items: String =
                    slots.iter().take(items.into()).flatten().map(|&item| name(item)).collect();
                format!("takes the items of {id}: [{items}]")
            }
            Value::Inactive | Value::Activating => String::new(),
        },
        SeizeStep::Clear => format!("fetch_and: clear bit {id} of the mask"),
        SeizeStep::Release => format!("store word {id} = INACTIVE"),
    }
}

fn text(value: Value) -> String {
    match value {
        Value::Inactive => "INACTIVE".into(),
        Value::Activating => "ACTIVATING".into(),
        Value::Items(items) => format!("{items} items"),
    }
}

fn word(word: Word) -> String {
    let mark = if word.seized { "|SEIZED" } else { "" };
    format!("{}{mark}", text(word.value))
}

pub(super) fn place(write: Write) -> String {
    match write {
        Write::Word(id, value) => format!("word {id} = {}", word(value)),
        Write::Slot(id, slot, item) => format!("{} into slot {slot} of {id}", name(item)),
    }
}

pub(super) fn picture(state: &State, id: Id) -> String {
    let block = state.block(id);
    let slots = block.slots.iter().map(|slot| slot.map_or('-', name));
    format!("{:17} [{}]", word(block.word), slots.collect::<String>())
}

pub(super) fn outside(model: &Seizure, state: &State) -> String {
    let items = (0..model.protocol.items).filter(|item| state.data.outside & 1 << item != 0);
    format!(" | outside {}", items.map(name).collect::<String>())
}
