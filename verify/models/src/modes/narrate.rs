//! Steps and states in words.

use super::protocol::{Action, Modes};
use super::state::{Change, ChangeStep, Cid, CpuStep, Mode, State};
use crate::kernel::state::{CpuNr, Id};

/// Returns the actor of `action` in `before`, and a description of the step.
pub(super) fn narrate(modes: &Modes, before: &State, action: Action) -> (String, String) {
    match action {
        Action::Switch(cpu, Some(thread)) => {
            (format!("cpu{cpu}"), format!("switch: lock run queue, current = T{thread}"))
        }
        Action::Switch(cpu, None) => {
            (format!("cpu{cpu}"), "switch: lock run queue, current = other process".into())
        }
        Action::Cpu(cpu) => (format!("cpu{cpu}"), cpu_step(modes, before, cpu)),
        Action::Fork(by, child) => (
            format!("T{by} fork"),
            format!("take mutex; T{child} makes {} users", before.users + 1),
        ),
        Action::Exit(by) => {
            (format!("T{by} exit"), format!("take mutex; {} users are left", before.users - 1))
        }
        Action::Pick(owner) => named(before, |change| format!("goes to {}", thing(change, owner))),
        Action::Change => named(before, |change| change_step(before, change)),
    }
}

fn named(before: &State, does: impl Fn(&Change) -> String) -> (String, String) {
    let change = before.change.as_ref();
    let what = |change: &Change| if change.child.is_some() { "fork" } else { "exit" };
    let actor = change.map(|change| format!("T{} {}", change.by, what(change)));
    (actor.unwrap_or_default(), change.map(does).unwrap_or_default())
}

fn thing(change: &Change, owner: u8) -> String {
    if change.to_cpus { format!("T{owner}") } else { format!("cpu{owner}") }
}

fn cpu_step(modes: &Modes, before: &State, nr: CpuNr) -> String {
    match before.cpu(nr).step {
        CpuStep::Rest => String::new(),
        CpuStep::Out => format!("switch out: load mode: {}", mode(before.mode)),
        CpuStep::Drop(id) => format!("switch out: clear bit {id}"),
        CpuStep::In => format!("switch in: load mode: {}", mode(before.mode)),
        CpuStep::Take(_) => {
            let first = before.first_free(before.max_cids);
            let id = first.or_else(|| before.first_free(modes.ids));
            format!("switch in: set first free bit: {}", number(id))
        }
        CpuStep::Converge { from, below, .. } => {
            format!(
                "switch in: {from} is too high, free below {below}: {}",
                number(before.first_free(below))
            )
        }
        CpuStep::Free(id) => format!("switch in: clear bit {id}"),
    }
}

fn change_step(before: &State, change: &Change) -> String {
    match change.step {
        ChangeStep::Drop(id) => format!("clear bit {id}"),
        ChangeStep::StoreMode => {
            format!("store mode: {}", if change.to_cpus { "per-CPU" } else { "per-task" })
        }
        ChangeStep::StoreTransit => "store transition bit".into(),
        ChangeStep::Next => "clear transition bit".into(),
        ChangeStep::Fix(owner) => format!("fix up {}", thing(change, owner)),
        ChangeStep::Act { owner, id, running } => format!(
            "act on what was seen of {}: {}, {}",
            thing(change, owner),
            number(id),
            if running.is_some() { "runs" } else { "does not run" }
        ),
        ChangeStep::Give => {
            format!("the child takes an ID below {} if one is free", before.max_cids)
        }
        ChangeStep::End => "release mutex".into(),
    }
}

fn number(id: Option<Id>) -> String {
    id.map_or("none".into(), |id| id.to_string())
}

fn mode(mode: Mode) -> &'static str {
    match (mode.per_cpu, mode.transit) {
        (false, false) => "task",
        (false, true) => "CPU->task",
        (true, false) => "CPU",
        (true, true) => "task->CPU",
    }
}

fn cid(cid: Cid) -> String {
    match cid {
        Cid::Unset => "-".into(),
        Cid::Own(id) => format!("{id}"),
        Cid::Transit(id) => format!("{id}~"),
        Cid::OfCpu(id) => format!("cpu's {id}"),
    }
}

/// Returns the state on one line: the mode; per CPU its thread and its ID; per thread its ID (`~`:
/// in transit); the bitmap.
pub(super) fn picture(modes: &Modes, state: &State) -> String {
    let cpus = (0..modes.cpus).map(|nr| {
        let cpu = state.cpu(nr);
        let current = cpu.current.map_or("-".into(), |thread| format!("T{thread}"));
        format!("{current:2} owns {}", cpu.owned.map_or("-".into(), |id| id.to_string()))
    });
    let threads = (0..modes.threads).map(|nr| format!("T{nr} {:8}", cid(state.thread(nr).cid)));
    let bits: String =
        (0..modes.ids).map(|id| if state.bitmap & 1 << id != 0 { '1' } else { '.' }).collect();
    format!(
        "{:9} | {} | {}| bits {bits}",
        mode(state.mode),
        cpus.collect::<Vec<_>>().join(" | "),
        threads.collect::<String>()
    )
}
