//! Steps and states in words.

use super::state::{Agent, State, Step, ThiefStep};
use super::{Action, Rules};
use crate::kernel::state::{CpuNr, Slot, Then};

/// Returns the actor of `action` in `before`, and a description of the step.
pub(super) fn narrate(before: &State, action: Action) -> (String, String) {
    match action {
        Action::Switch(cpu, true) => {
            (on(cpu), "switch: lock run queue, store current = ours".into())
        }
        Action::Switch(cpu, false) => {
            (on(cpu), "switch: lock run queue, store current = other process".into())
        }
        Action::Exit(cpu) => (on(cpu), "exit: lock run queue, stop being current".into()),
        Action::Cpu(cpu) => (on(cpu), cpu_step(before, cpu)),
        Action::Take(cpu, id) => (on(cpu), format!("alloc: test-and-set {id}, of all free ones")),
        Action::Drain(cpu) => (on(cpu), "store buffer drains".into()),
        Action::Steal(agent, from, to) => {
            let to = to
                .map_or("to free it".into(), |to| format!("for cpu{to}, whose run queue it locks"));
            (
                format!("agent{agent}"),
                format!("load slot of cpu{from}: {}, {to}", slot(before.cpu(from).slot)),
            )
        }
        Action::GiveUp(agent) => (format!("agent{agent}"), "gives up".into()),
        Action::Agent(agent) => (format!("agent{agent}"), agent_step(before, agent)),
    }
}

fn on(cpu: CpuNr) -> String {
    format!("cpu{cpu}")
}

fn cpu_step(before: &State, nr: CpuNr) -> String {
    let now = before.cpu(nr).slot;
    match before.cpu(nr).step {
        Step::Rest | Step::Take => String::new(),
        Step::Barrier(Then::Exiting) => "exit: full barrier".into(),
        Step::Barrier(_) => "switch: full barrier".into(),
        Step::LoadOut => format!("switch out: load slot: {}", slot(now)),
        Step::ReleaseOut(id) => {
            format!("switch out: {}", exchange(now, Slot::Lazy(id), Slot::Unset))
        }
        Step::ClearOut(id) => format!("switch out: clear bit {id}"),
        Step::LoadIn => format!("get: load slot: {}", slot(now)),
        Step::ReleaseIn(id) => format!("get: {}", exchange(now, Slot::Lazy(id), Slot::Unset)),
        Step::ClearIn(id) => format!("get: clear bit {id}"),
        Step::Install(id) => format!("get: store slot = VALID({id}); holds {id}"),
        Step::LoadExit => format!("exit: load slot: {}", slot(now)),
        Step::ReleaseExit(from) => format!("exit: {}", exchange(now, from, Slot::Unset)),
        Step::ClearExit(id) => format!("exit: clear bit {id}"),
    }
}

fn agent_step(before: &State, agent: usize) -> String {
    let Agent::Thief(thief) = before.agents[agent] else { return String::new() };
    let cpu = before.cpu(thief.from);
    let (valid, lazy) = (Slot::Valid(thief.id), Slot::Lazy(thief.id));
    match (thief.step, thief.to) {
        (ThiefStep::Mark, _) => format!("cpu{}: {}", thief.from, exchange(cpu.slot, valid, lazy)),
        (ThiefStep::Look, _) => {
            format!(
                "load current of cpu{}: {}",
                thief.from,
                if cpu.seen { "ours" } else { "not ours" }
            )
        }
        (ThiefStep::Release, _) => {
            format!("cpu{}: {}", thief.from, exchange(cpu.slot, lazy, Slot::Unset))
        }
        (ThiefStep::Settle, Some(to)) => format!("store slot of cpu{to} = VALID({})", thief.id),
        (ThiefStep::Settle, None) => format!("clear bit {}", thief.id),
    }
}

fn slot(slot: Slot) -> String {
    match slot {
        Slot::Unset => "UNSET".into(),
        Slot::Valid(id) => format!("VALID({id})"),
        Slot::Lazy(id) => format!("LAZY({id})"),
    }
}

fn exchange(now: Slot, from: Slot, to: Slot) -> String {
    format!("CAS {} -> {}{}", slot(from), slot(to), if now == from { "" } else { " FAILS" })
}

/// Returns the state on one line: per CPU the thread and the ID it holds, and the slot; then the
/// bitmap.
pub(super) fn picture(rules: &Rules, state: &State) -> String {
    let cpus = (0..rules.cpus).map(|nr| {
        let cpu = state.cpu(nr);
        let thread = match (cpu.current, cpu.held) {
            (true, Some(id)) => format!("T:{id}"),
            (true, None) => "T:?".into(),
            (false, _) => "-".into(),
        };
        format!("{thread:3} {:8}", slot(cpu.slot))
    });
    let bits: String =
        (0..rules.cpus).map(|id| if state.bitmap & 1 << id != 0 { '1' } else { '.' }).collect();
    format!("| {} | bits {bits}", cpus.collect::<Vec<_>>().join(" | "))
}
