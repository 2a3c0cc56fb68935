//! Steps and states in words.

use super::course;
use super::protocol::{Action, Kernel};
use super::state::{
    Agent, ClearStep, Cpu, CpuNr, CpuStep, Id, Mover, MoverStep, Place, RemoteClear, Scanner,
    ScannerStep, Slot, State, Then,
};

/// Returns the actor of `action` in `before`, and a description. For whole work it describes the
/// steps that others can observe, and those that its decisions depend on.
pub(super) fn narrate(kernel: &Kernel, before: &State, action: Action) -> (String, String) {
    let mut told: Vec<(String, String)> = Vec::new();
    course::run(kernel, before, action, |state, step| {
        let mut after = *state;
        kernel.act(&mut after, step);
        if told.is_empty() || matters(state, step, &after) {
            told.push(narrate_step(kernel, state, step));
        }
    });
    let actor = told.first().map(|(actor, _)| actor.clone()).unwrap_or_default();
    (actor, told.into_iter().map(|(_, step)| step).collect::<Vec<_>>().join("; "))
}

/// Returns `true` if a step changes slots or bits, or if decisions depend on it.
fn matters(before: &State, step: Action, after: &State) -> bool {
    let decides = match step {
        Action::Agent(agent) => matches!(
            before.agents[usize::from(agent)],
            Agent::Scanner(Scanner {
                step: ScannerStep::LoadWeight
                    | ScannerStep::Clear(RemoteClear { step: ClearStep::Look, .. }),
                ..
            })
        ),
        _ => false,
    };
    let slots = |state: &State| state.cpus.map(|cpu| cpu.slot);
    decides || before.bitmap != after.bitmap || slots(before) != slots(after)
}

fn narrate_step(kernel: &Kernel, before: &State, action: Action) -> (String, String) {
    match action {
        Action::Switch(cpu, Some(thread)) => {
            (on(cpu), format!("switch: lock run queue, store current = T{thread}"))
        }
        Action::Switch(cpu, None) => {
            (on(cpu), "switch: lock run queue, store current = other process".into())
        }
        Action::Exit(cpu) => (on(cpu), "exit: lock run queue, stop being current".into()),
        Action::Cpu(cpu) => (on(cpu), cpu_step(kernel, before, cpu)),
        Action::Drain(cpu) => (on(cpu), "store buffer drains".into()),
        Action::Move(agent, thread, to) => {
            (named(kernel, agent, "move"), begin_move(before, thread, to))
        }
        Action::Scan(agent, by) => (named(kernel, agent, "scan"), format!("T{by} begins")),
        Action::Visit(agent, cpu) => (named(kernel, agent, "scan"), visit(before, agent, cpu)),
        Action::Agent(agent) => match before.agents[usize::from(agent)] {
            Agent::Mover(mover) => (named(kernel, agent, "move"), mover_step(before, mover)),
            Agent::Scanner(scanner) => {
                (named(kernel, agent, "scan"), scanner_step(before, scanner))
            }
            Agent::Idle => (String::new(), String::new()),
        },
        Action::Elapse => ("clock".into(), "100 ms pass".into()),
    }
}

fn named(kernel: &Kernel, agent: u8, does: &str) -> String {
    if agent == kernel.spare() { format!("whole {does}") } else { format!("agent{agent} {does}") }
}

fn on(cpu: CpuNr) -> String {
    format!("cpu{cpu}")
}

fn cpu_step(kernel: &Kernel, before: &State, nr: CpuNr) -> String {
    let cpu = before.cpu(nr);
    match cpu.step {
        CpuStep::Rest => String::new(),
        CpuStep::Barrier(Then::Exiting) => "exit: full barrier".into(),
        CpuStep::Barrier(_) => "switch: full barrier".into(),
        CpuStep::StampOut => "switch out: time = now".into(),
        CpuStep::LoadOut => format!("switch out: load slot: {}", slot(cpu.slot)),
        CpuStep::ReleaseOut(id) => {
            format!("switch out: {}", exchange(cpu.slot, Slot::Lazy(id), Slot::Unset))
        }
        CpuStep::ClearOut(id) => format!("switch out: clear bit {id}"),
        CpuStep::LoadIn => match cpu.slot {
            Slot::Valid(id) if !kernel.timed() => {
                format!("get: load slot: VALID({id}); holds {id}")
            }
            other => format!("get: load slot: {}", slot(other)),
        },
        CpuStep::StampIn(id) => format!("get: time = now; holds {id}"),
        CpuStep::ReleaseIn(id) => {
            format!("get: {}", exchange(cpu.slot, Slot::Lazy(id), Slot::Unset))
        }
        CpuStep::ClearIn(id) => format!("get: clear bit {id}"),
        CpuStep::LoadShrink => format!("alloc: load max_nr_cid: {}", before.max_nr_cid),
        CpuStep::Shrink { from, to } => {
            format!("alloc: CAS max_nr_cid {from} -> {to}{}", outcome(before.max_nr_cid == from))
        }
        CpuStep::LoadRecent { .. } => format!("alloc: load recent: {}", recent(cpu.recent)),
        CpuStep::TakeRecent(id) => take(before, "recent", id),
        CpuStep::LoadMax => format!("alloc: load max_nr_cid: {}", before.max_nr_cid),
        CpuStep::Raise(id) => {
            format!("alloc: CAS max_nr_cid {id} -> {}{}", id + 1, outcome(before.max_nr_cid == id))
        }
        CpuStep::TakeNew(id) => take(before, "new", id),
        CpuStep::LoadBitmap => {
            format!("alloc: load bitmap: first free is {}", before.bitmap.trailing_ones())
        }
        CpuStep::TakeFirst(id) => take(before, "first free", id),
        CpuStep::Lock => "alloc: take slow lock".into(),
        CpuStep::Unlock(_) => "alloc: release slow lock".into(),
        CpuStep::StampNew(_) => "get: time = now".into(),
        CpuStep::Install(id) if kernel.remembers() => format!("get: store slot = VALID({id})"),
        CpuStep::Install(id) => format!("get: store slot = VALID({id}); holds {id}"),
        CpuStep::Remember(id) => format!("get: store recent = {id}; holds {id}"),
        CpuStep::LoadExit => format!("exit: load slot: {}", slot(cpu.slot)),
        CpuStep::ReleaseExit(from) => format!("exit: {}", exchange(cpu.slot, from, Slot::Unset)),
        CpuStep::ClearExit(id) => format!("exit: clear bit {id}"),
        CpuStep::Leave => "exit: one user fewer".into(),
    }
}

fn begin_move(before: &State, thread: u8, to: CpuNr) -> String {
    match before.thread(thread).place {
        Place::Waiting(from) if before.thread(thread).last.is_none() => {
            format!("T{thread} cpu{from} -> cpu{to}: it used no ID")
        }
        Place::Waiting(from) => format!(
            "T{thread} cpu{from} -> cpu{to}: lock cpu{to}'s run queue, load its slot: {}",
            slot(before.cpu(to).slot)
        ),
        _ => String::new(),
    }
}

fn mover_step(before: &State, mover: Mover) -> String {
    let Mover { from, to, thread, .. } = mover;
    let source = before.cpu(from);
    match mover.step {
        MoverStep::LoadToRecent => {
            format!("load recent of cpu{to}: {}", recent(before.cpu(to).recent))
        }
        MoverStep::LoadFrom => {
            let last = recent(before.thread(thread).last);
            format!("load slot of cpu{from}: {}; T{thread} used {last} last", slot(source.slot))
        }
        MoverStep::Look(_) => format!("load current of cpu{from}: {}", ours(source)),
        MoverStep::Mark(id) => agent_exchange(from, source.slot, Slot::Valid(id), Slot::Lazy(id)),
        MoverStep::LookAgain(_) => format!("load current of cpu{from} again: {}", ours(source)),
        MoverStep::Release(id) => agent_exchange(from, source.slot, Slot::Lazy(id), Slot::Unset),
        MoverStep::ForgetRecent(_) => format!("store recent of cpu{from} = none"),
        MoverStep::Clear(id) => format!("clear bit {id}"),
        MoverStep::StampTo(_) => format!("time of cpu{to} = now"),
        MoverStep::InstallTo(id) => format!("store slot of cpu{to} = VALID({id})"),
        MoverStep::RememberTo(id) => format!("store recent of cpu{to} = {id}"),
    }
}

fn visit(before: &State, agent: u8, cpu: CpuNr) -> String {
    match before.agents[usize::from(agent)] {
        Agent::Scanner(Scanner { weight: Some(weight), .. }) => {
            format!("load slot of cpu{cpu}: {}, weight is {weight}", slot(before.cpu(cpu).slot))
        }
        _ => format!("load current of cpu{cpu}: {}", ours(before.cpu(cpu))),
    }
}

fn scanner_step(before: &State, scanner: Scanner) -> String {
    match scanner.step {
        ScannerStep::Visit => String::new(),
        ScannerStep::Stamp(cpu) => format!("time of cpu{cpu} = now"),
        ScannerStep::LoadTime(cpu) => {
            format!(
                "load time of cpu{cpu}: {}",
                if before.cpu(cpu).expired { "expired" } else { "recent" }
            )
        }
        ScannerStep::LoadSlot(cpu) => load_slot(before, cpu),
        ScannerStep::Clear(clear) => clear_step(before, clear),
        ScannerStep::LoadWeight => format!("count the set bits: {}", before.bitmap.count_ones()),
    }
}

fn load_slot(before: &State, cpu: CpuNr) -> String {
    format!("load slot of cpu{cpu}: {}", slot(before.cpu(cpu).slot))
}

fn clear_step(before: &State, clear: RemoteClear) -> String {
    let RemoteClear { cpu, id, step, .. } = clear;
    match step {
        ClearStep::Mark => {
            agent_exchange(cpu, before.cpu(cpu).slot, Slot::Valid(id), Slot::Lazy(id))
        }
        ClearStep::Look => format!("load current of cpu{cpu}: {}", ours(before.cpu(cpu))),
        ClearStep::Release => {
            agent_exchange(cpu, before.cpu(cpu).slot, Slot::Lazy(id), Slot::Unset)
        }
        ClearStep::Clear => format!("clear bit {id}"),
    }
}

fn ours(cpu: &Cpu) -> &'static str {
    if cpu.seen_running { "ours" } else { "not ours" }
}

fn slot(slot: Slot) -> String {
    match slot {
        Slot::Unset => "UNSET".into(),
        Slot::Valid(id) => format!("VALID({id})"),
        Slot::Lazy(id) => format!("LAZY({id})"),
    }
}

fn recent(id: Option<Id>) -> String {
    id.map_or("none".into(), |id| id.to_string())
}

fn outcome(success: bool) -> &'static str {
    if success { "" } else { " FAILS" }
}

fn exchange(now: Slot, from: Slot, to: Slot) -> String {
    format!("CAS {} -> {}{}", slot(from), slot(to), outcome(now == from))
}

fn agent_exchange(cpu: CpuNr, now: Slot, from: Slot, to: Slot) -> String {
    format!("cpu{cpu}: {}", exchange(now, from, to))
}

fn take(before: &State, which: &str, id: Id) -> String {
    format!("alloc: test-and-set {which} {id}{}", outcome(before.bitmap & 1 << id == 0))
}

/// Returns the state on one line: per CPU the thread and the ID it holds, slot, recent ID; then the
/// bitmap.
pub(super) fn picture(kernel: &Kernel, state: &State) -> String {
    let cpus = (0..kernel.cpus).map(|nr| {
        let cpu = state.cpu(nr);
        let thread = match (cpu.current, state.holder(nr)) {
            (_, Some((thread, Some(id)))) => format!("T{thread}:{id}"),
            (Some(thread), _) => format!("T{thread}:?"),
            (None, _) => "-".into(),
        };
        let recent = if kernel.remembers() {
            format!(" r={}", cpu.recent.map_or("-".into(), |id| id.to_string()))
        } else {
            String::new()
        };
        format!("{thread:4} {:8}{recent}", slot(cpu.slot))
    });
    let bits: String =
        (0..kernel.cpus).map(|id| if state.bitmap & 1 << id != 0 { '1' } else { '.' }).collect();
    format!("| {} | bits {bits}", cpus.collect::<Vec<_>>().join(" | "))
}
