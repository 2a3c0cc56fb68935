//! Steps and states in words.

use super::protocol::{Action, Flaw, Seizure};
use super::state::{
    At, CpuNr, Drain, Hold, Id, Item, Op, SeizeStep, Set, State, Thief, Value, Word, Work, Write,
};

/// Who takes `action` in `before`, and what it does.
pub(super) fn narrate(model: &Seizure, before: &State, action: Action) -> (String, String) {
    match action {
        Action::Run(nr, cpu) => (thread(before, nr), format!("is scheduled on cpu{cpu}")),
        Action::Preempt(nr) => {
            let aborted = aborted(model, before, nr);
            (thread(before, nr), format!("is preempted{aborted}"))
        }
        Action::Begin(nr, op) => (thread(before, nr), format!("begins to {}", what(op))),
        Action::Thread(nr) => (thread(before, nr), thread_step(model, before, nr)),
        Action::Flush(cpu, index) => {
            let write = before.buffers[usize::from(cpu)].iter().nth(index);
            let write = write.map_or(String::new(), |&write| place(write));
            (format!("cpu{cpu}"), format!("its {write} becomes visible"))
        }
        Action::Drain(nr) => (drainer(nr), "begins to drain".into()),
        Action::Drainer(nr) => (drainer(nr), drainer_step(before, nr)),
        Action::Choose(nr, id) => (drainer(nr), format!("goes for {id}")),
        Action::Reach(nr, cpu) => {
            (drainer(nr), format!("membarrier reaches {}", fenced(model, before, cpu)))
        }
        Action::Steal(cpu, id) => ("thief".into(), format!("{id}: store table[{cpu}] = UNSET")),
        Action::Thief => ("thief".into(), thief_step(model, before)),
        Action::Install(cpu, id) => ("thief".into(), format!("store table[{cpu}] = {id}")),
    }
}

fn thread(before: &State, nr: usize) -> String {
    match before.threads[nr].on {
        Some(cpu) => format!("T{nr} on cpu{cpu}"),
        None => format!("T{nr}"),
    }
}

fn drainer(nr: usize) -> String {
    format!("drainer{nr}")
}

fn what(op: Op) -> String {
    match op {
        Op::Push(item) => format!("push {}", name(item)),
        Op::Pop => "pop".into(),
    }
}

/// Items are letters, so that they are not taken for IDs.
fn name(item: Item) -> char {
    char::from(b'x' + item)
}

fn aborted(model: &Seizure, before: &State, nr: usize) -> &'static str {
    let mut thread = before.threads[nr];
    super::thread::abort(model, &mut thread);
    if thread == before.threads[nr] { "" } else { ", section aborted" }
}

fn fenced(model: &Seizure, before: &State, cpu: CpuNr) -> String {
    let running = before.threads.iter().position(|thread| thread.on == Some(cpu));
    let aborted = running.map_or("", |nr| aborted(model, before, nr));
    format!("cpu{cpu}{aborted}")
}

fn thread_step(model: &Seizure, before: &State, nr: usize) -> String {
    let thread = before.threads[nr];
    let (Some(cpu), Some(Work { op, at })) = (thread.on, thread.work) else {
        return String::new();
    };
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

fn drainer_step(before: &State, nr: usize) -> String {
    let drainer = before.drainers[nr];
    match drainer.at {
        Drain::Lock => "takes the lock".into(),
        Drain::Mask => format!("load the mask: {}", ids(before.mask)),
        Drain::Seize(hold) => seize_step(before, hold),
        Drain::Unlock => "is done; releases the lock".into(),
        Drain::Idle | Drain::Choose => String::new(),
    }
}

fn seize_step(before: &State, hold: Hold) -> String {
    let Hold { id, step, value, .. } = hold;
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

fn thief_step(model: &Seizure, before: &State) -> String {
    match before.thief {
        Thief::Fence(cpu, _) => format!("fence {}", fenced(model, before, cpu)),
        Thief::Idle | Thief::Install(_) => String::new(),
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

fn place(write: Write) -> String {
    match write {
        Write::Word(id, value) => format!("store of word {id} = {}", word(value)),
        Write::Slot(id, slot, item) => format!("store of {} into slot {slot} of {id}", name(item)),
    }
}

fn ids(members: Set) -> String {
    let members: Vec<String> =
        (0..Id::BITS).filter(|id| members & 1 << id != 0).map(|id| id.to_string()).collect();
    format!("{{{}}}", members.join(" "))
}

/// The state on one line: who runs where with which ID, the blocks, the mask, the items outside.
pub(super) fn picture(model: &Seizure, state: &State) -> String {
    let cpus = (0..model.cpus).map(|cpu| {
        let running = state.threads.iter().position(|thread| thread.on == Some(cpu));
        let running = running.map_or("-".into(), |nr| format!("T{nr}"));
        let id = state.table[usize::from(cpu)].map_or("-".into(), |id| id.to_string());
        format!("{running:2} {id}")
    });
    let blocks = (0..model.ids).map(|id| {
        let block = state.block(id);
        let slots = block.slots.iter().map(|slot| slot.map_or('-', name));
        format!("{:17} [{}]", word(block.word), slots.collect::<String>())
    });
    let parts: Vec<String> = cpus.chain(blocks).collect();
    let outside = (0..model.items).filter(|item| state.outside & 1 << item != 0).map(name);
    let outside: String = outside.collect();
    format!("| {} | mask {:5} | outside {outside}", parts.join(" | "), ids(state.mask))
}
