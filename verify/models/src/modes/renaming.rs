//! Symmetry: CPUs and threads are interchangeable. IDs are not: "the first free one" orders them.

use super::protocol::Modes;
use super::state::{ChangeStep, Cpu, CpuStep, Place, State, THREADS};
use crate::kernel::state::{Id, ThreadNr};
use crate::symmetry::{rename_set, sorting_orders};

/// Returns the least state among those renamings of `state` that put the CPUs in order.
pub(super) fn representative(modes: &Modes, state: &State) -> State {
    let sorting = sorting_orders(modes.cpus, state.cpus.map(nameless));
    let renamed = sorting.map(|order| sort_threads(modes, &rename_cpus(state, order)));
    renamed.min().expect("some order sorts the CPUs")
}

/// Returns a CPU without the name of its current thread.
fn nameless(cpu: Cpu) -> (Option<Id>, CpuStep, bool) {
    (cpu.owned, cpu.step, cpu.current.is_some())
}

fn rename_cpus(state: &State, order: &[u8; 3]) -> State {
    let mut renamed = *state;
    for (old, cpu) in state.cpus.iter().enumerate() {
        renamed.cpus[usize::from(order[old])] = *cpu;
    }
    for thread in &mut renamed.threads {
        if let Place::Running(cpu) | Place::Leaving(cpu) = &mut thread.place {
            *cpu = order[usize::from(*cpu)];
        }
    }
    if !state.change.is_some_and(|change| change.to_cpus) {
        rename_owners(&mut renamed, order);
    }
    renamed
}

/// Owners to be fixed up are CPUs or threads.
fn rename_owners(state: &mut State, order: &[u8]) {
    let Some(change) = &mut state.change else { return };
    change.todo = rename_set(change.todo, order);
    if let ChangeStep::Fix(owner) | ChangeStep::Act { owner, .. } = &mut change.step {
        *owner = order[usize::from(*owner)];
    }
}

/// Renames the threads in the order of all that distinguishes them.
fn sort_threads(modes: &Modes, state: &State) -> State {
    let mut old: [ThreadNr; THREADS] = [0, 1, 2, 3];
    old[..usize::from(modes.threads)].sort_by_key(|&nr| (*state.thread(nr), roles(state, nr)));
    let mut new: [ThreadNr; THREADS] = [0; THREADS];
    for (to, &from) in (0..).zip(&old) {
        new[usize::from(from)] = to;
    }
    let mut renamed = *state;
    renamed.threads = old.map(|nr| *state.thread(nr));
    for cpu in &mut renamed.cpus {
        cpu.current = cpu.current.map(|nr| new[usize::from(nr)]);
    }
    if let Some(change) = &mut renamed.change {
        change.by = new[usize::from(change.by)];
        change.child = change.child.map(|nr| new[usize::from(nr)]);
        if let ChangeStep::Act { running: Some(running), .. } = &mut change.step {
            *running = new[usize::from(*running)];
        }
        if change.to_cpus {
            rename_owners(&mut renamed, &new);
        }
    }
    renamed
}

/// Returns the roles of a thread in the change in flight.
fn roles(state: &State, nr: ThreadNr) -> [bool; 5] {
    let Some(change) = state.change else { return [false; 5] };
    let (fixed, seen) = match change.step {
        ChangeStep::Fix(owner) => (Some(owner), None),
        ChangeStep::Act { owner, running, .. } => (Some(owner), running),
        _ => (None, None),
    };
    [
        change.by == nr,
        change.child == Some(nr),
        change.to_cpus && change.todo & 1 << nr != 0,
        change.to_cpus && fixed == Some(nr),
        seen == Some(nr),
    ]
}
