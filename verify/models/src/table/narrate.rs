//! Steps and states in words.

use super::protocol::{Action, Table};
use super::state::{Agent, At, CpuNr, Id, State, Theft, TheftStep};

/// Returns the actor of `action` in `before`, and a description of the step.
pub(super) fn narrate(table: &Table, before: &State, action: Action) -> (String, String) {
    match action {
        Action::Run(nr, cpu) => (thread(before, nr), format!("is scheduled on cpu{cpu}")),
        Action::Preempt(nr) => (thread(before, nr), format!("is preempted{}", aborted(before, nr))),
        Action::Signal(nr) => (
            thread(before, nr),
            format!("signal: its handler begins an add{}", aborted(before, nr)),
        ),
        Action::Exit(nr) => (thread(before, nr), "exits".into()),
        Action::Thread(nr) => (thread(before, nr), thread_step(table, before, nr)),
        Action::TakeFree(nr, cpu, id) => {
            (thread(before, nr), format!("load table[{cpu}]: UNSET; take free {id}"))
        }
        Action::Steal(nr, cpu, victim) => {
            let from = entry(before.table[usize::from(victim)]);
            (
                thread(before, nr),
                format!("load table[{cpu}]: UNSET; load table[{victim}]: {from}, steal it"),
            )
        }
        Action::AgentLock(nr) => (agent(nr), "try lock: got it".into()),
        Action::AgentSteal(nr, victim, to) => {
            let from = entry(before.table[usize::from(victim)]);
            let to = to.map_or("free it".into(), |cpu| format!("give it to cpu{cpu}"));
            (agent(nr), format!("load table[{victim}]: {from}, steal it and {to}"))
        }
        Action::Refuse(nr) => (thread(before, nr), "fence refused: the ID goes back".into()),
        Action::AgentRefuse(nr) => (agent(nr), "fence refused: the ID goes back".into()),
        Action::AgentUnset(nr, cpu) => (agent(nr), format!("evict: store table[{cpu}] = UNSET")),
        Action::AgentFence(nr, cpu) => (agent(nr), format!("evict: {}", fence(before, cpu))),
        Action::Agent(nr) => match before.agents[nr] {
            Agent::Stealing(theft) => (agent(nr), theft_step(before, theft)),
            Agent::Evicting(_) => (agent(nr), "evict: free the IDs".into()),
            _ => (agent(nr), "unlock".into()),
        },
    }
}

fn agent(nr: usize) -> String {
    format!("agent{nr}")
}

fn thread(before: &State, nr: usize) -> String {
    match before.threads[nr].on {
        Some(cpu) => format!("T{nr} on cpu{cpu}"),
        None => format!("T{nr}"),
    }
}

fn aborted(before: &State, nr: usize) -> &'static str {
    if before.threads[nr].add.at.in_section() { ", section aborted" } else { "" }
}

fn thread_step(table: &Table, before: &State, nr: usize) -> String {
    let thread = before.threads[nr];
    let on = thread.on.unwrap_or(CpuNr::MAX);
    match thread.add.at {
        At::Start if table.cpu_inside => "store rseq_cs".into(),
        At::Start => format!("load cpu_id: {on}, outside the section"),
        At::Unarmed(_) => "store rseq_cs".into(),
        At::Armed | At::LoadCpu => format!("load cpu_id: {on}"),
        At::HasCpu(cpu) | At::LoadEntry(cpu) => {
            format!("load table[{cpu}]: {}", entry(before.table[usize::from(cpu)]))
        }
        At::HasId(id) => format!("load data[{id}]"),
        At::Loaded(read) => format!("store data[{}] + 1: commit{}", read.id, lost(read.fresh)),
        At::Block => "block signals".into(),
        At::TryLock if before.locked => "try lock: denied".into(),
        At::TryLock => "try lock: got it".into(),
        At::Stealing(theft) => theft_step(before, theft),
        At::Install(cpu, id) => format!("store table[{cpu}] = {id}"),
        At::Unlock => "unlock".into(),
        At::Unblock { .. } if !table.blocks_signals => "leave the slow path".into(),
        At::Unblock { .. } => "unblock signals".into(),
        At::Shared => "atomic add to the shared slot".into(),
        At::Gone => String::new(),
    }
}

fn theft_step(before: &State, theft: Theft) -> String {
    let Theft { id, victim, to, step } = theft;
    let victim = victim.unwrap_or(CpuNr::MAX);
    match step {
        TheftStep::Unset => format!("store table[{victim}] = UNSET"),
        TheftStep::Fence => fence(before, victim),
        TheftStep::Load => format!("load data[{id}]"),
        TheftStep::Store { fresh } => format!("store data[{id}] + 1{}", lost(fresh)),
        TheftStep::Settle => match to {
            Some(cpu) => format!("store table[{cpu}] = {id}"),
            None => format!("free {id}"),
        },
    }
}

fn fence(before: &State, cpu: CpuNr) -> String {
    let running = before.threads.iter().position(|thread| thread.on == Some(cpu));
    let hit = running.filter(|&nr| before.threads[nr].add.at.in_section());
    format!(
        "fence cpu{cpu}{}",
        hit.map_or(String::new(), |nr| format!(": T{nr}'s section aborted"))
    )
}

fn lost(fresh: bool) -> &'static str {
    if fresh { "" } else { ", from an outdated value" }
}

fn entry(entry: Option<Id>) -> String {
    entry.map_or("UNSET".into(), |id| id.to_string())
}

/// Returns the state on one line: the table, the free IDs, the lock.
pub(super) fn picture(table: &Table, state: &State) -> String {
    let cpus = (0..table.cpus).map(|cpu| {
        let running = state.threads.iter().position(|thread| thread.on == Some(cpu));
        let running = running.map_or("-".into(), |nr| format!("T{nr}"));
        format!("{running:2} {:5}", entry(state.table[usize::from(cpu)]))
    });
    let free: String =
        (0..table.ids).filter(|id| state.free & 1 << id != 0).map(|id| id.to_string()).collect();
    let lock = if state.locked { "held" } else { "free" };
    format!("| {} | free {{{free}}} | lock {lock}", cpus.collect::<Vec<_>>().join(" | "))
}
