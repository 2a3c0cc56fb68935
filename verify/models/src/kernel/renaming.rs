//! Symmetry: CPUs, threads and agents of one role are interchangeable.
//!
//! No step treats a CPU, a thread or an agent by its number (a scan visits CPUs in any order), so
//! renaming them maps steps to steps. IDs are not interchangeable: "the first free one" orders
//! them.

use super::protocol::Kernel;
use super::state::{Agent, Cpu, CpuNr, Place, Scanner, ScannerStep, State, ThreadNr};
use crate::symmetry::{rename_set, sorting_orders};

/// Returns the least state among those renamings of `state` that put the CPUs in order.
///
/// The result of [`nameless`] for a CPU is the same under every renaming, so sorting by it leaves
/// only the ties as a choice.
pub(super) fn representative(kernel: &Kernel, state: &State) -> State {
    let sorting = sorting_orders(kernel.cpus, state.cpus.map(nameless));
    let renamed = sorting.map(|order| {
        let mut renamed = rename_cpus(state, order);
        sort_threads(kernel, &mut renamed);
        sort_agents(kernel, &mut renamed);
        renamed
    });
    renamed.min().expect("some order sorts the CPUs")
}

/// Returns a CPU without the name of its current thread.
fn nameless(cpu: Cpu) -> (Cpu, bool) {
    (Cpu { current: None, ..cpu }, cpu.current.is_some())
}

fn rename_cpus(state: &State, order: &[u8; 3]) -> State {
    let new = |cpu: &mut CpuNr| *cpu = order[usize::from(*cpu)];
    let mut renamed = *state;
    for (old, cpu) in state.cpus.iter().enumerate() {
        renamed.cpus[usize::from(order[old])] = *cpu;
    }
    for thread in &mut renamed.threads {
        match &mut thread.place {
            Place::Waiting(cpu) | Place::Running(cpu) | Place::Moving(cpu) => new(cpu),
            Place::Dead => {}
        }
    }
    for agent in &mut renamed.agents {
        match agent {
            Agent::Idle => {}
            Agent::Mover(mover) => {
                new(&mut mover.from);
                new(&mut mover.to);
            }
            Agent::Scanner(scanner) => {
                match &mut scanner.step {
                    ScannerStep::Stamp(cpu)
                    | ScannerStep::LoadTime(cpu)
                    | ScannerStep::LoadSlot(cpu) => new(cpu),
                    ScannerStep::Clear(clear) => new(&mut clear.cpu),
                    ScannerStep::Visit | ScannerStep::LoadWeight => {}
                }
                scanner.todo = rename_set(scanner.todo, order);
            }
        }
    }
    if let Some(cpu) = &mut renamed.slow_lock {
        new(cpu);
    }
    renamed
}

/// Renames the threads in the order of all that distinguishes them.
///
/// Equal places and equal last IDs make two threads interchangeable, except for a current thread
/// and the one that the same switch takes off, and for the scans that they are at: hence the other
/// keys. Two moving threads never have one destination.
fn sort_threads(kernel: &Kernel, state: &mut State) {
    let key = |state: &State, nr: ThreadNr| {
        let thread = *state.thread(nr);
        let scan = state.agents.iter().find_map(|agent| match agent {
            Agent::Scanner(scanner) if scanner.by == nr => Some(Scanner { by: 0, ..*scanner }),
            _ => None,
        });
        (thread, state.cpus.iter().any(|cpu| cpu.current == Some(nr)), scan)
    };
    let mut old: [ThreadNr; 3] = [0, 1, 2];
    old[..usize::from(kernel.threads)].sort_by_key(|&nr| key(state, nr));
    let mut new: [ThreadNr; 3] = [0; 3];
    for (to, &from) in (0..).zip(&old) {
        new[usize::from(from)] = to;
    }
    state.threads = old.map(|nr| state.threads[usize::from(nr)]);
    for cpu in &mut state.cpus {
        cpu.current = cpu.current.map(|nr| new[usize::from(nr)]);
    }
    for agent in &mut state.agents {
        match agent {
            Agent::Idle => {}
            Agent::Mover(mover) => mover.thread = new[usize::from(mover.thread)],
            Agent::Scanner(scanner) => scanner.by = new[usize::from(scanner.by)],
        }
    }
}

fn sort_agents(kernel: &Kernel, state: &mut State) {
    if kernel.agents.windows(2).all(|roles| roles[0] == roles[1]) {
        state.agents[..kernel.agents.len()].sort();
    }
}
