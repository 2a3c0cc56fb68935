//! Properties of every reachable state.

use super::protocol::{Action, Table};
use super::state::{Agent, At, Fault, Id, State};
use super::thread;
use crate::explore::Model;

/// An increment is lost.
pub const LOST: &str = "P1 sums: an increment is lost";
/// An increment is stored twice.
pub const DOUBLED: &str = "P1 sums: an increment is stored twice";
/// An add ends without its increment.
pub const MISSED: &str = "P1 sums: an add ends without its increment";
/// Two CPUs have one ID.
pub const DISTINCT: &str = "P2 ownership: two table entries are equal";
/// An installation destroys an ID.
pub const OVERWRITTEN: &str = "P2 ownership: an ID is stored over another";
/// An ID is lost or has two owners.
pub const CONSERVED: &str =
    "P2 ownership: an ID is not exactly one of: in the table, free, in transit";
/// A thread waits for another one.
pub const SOLO: &str = "P3 progress: a running thread cannot finish its add by itself";

/// More own steps than the longest undisturbed add, a handler's and the interrupted one, takes.
const SOLO_STEPS: usize = 64;

/// Returns the first property that `state` breaks.
pub(super) fn broken(table: &Table, state: &State) -> Option<&'static str> {
    match state.fault {
        Some(Fault::Lost) => Some(LOST),
        Some(Fault::Doubled) => Some(DOUBLED),
        Some(Fault::Missed) => Some(MISSED),
        Some(Fault::Overwritten) => Some(OVERWRITTEN),
        None if !distinct(table, state) => Some(DISTINCT),
        None if (0..table.ids).any(|id| owners(table, state, id) != 1) => Some(CONSERVED),
        None if table.checks_solo
            && !(0..table.threads).all(|nr| finishes_alone(table, state, nr.into())) =>
        {
            Some(SOLO)
        }
        None => None,
    }
}

fn distinct(table: &Table, state: &State) -> bool {
    let entries = &state.table[..usize::from(table.cpus)];
    (0..entries.len()).all(|a| (0..a).all(|b| entries[a].is_none() || entries[a] != entries[b]))
}

fn owners(table: &Table, state: &State, id: Id) -> usize {
    let adds =
        state.threads.iter().flat_map(|thread| [Some(thread.add), thread.interrupted]).flatten();
    let in_threads = adds.filter(|add| match add.at {
        At::Stealing(theft) => theft.id == id && table.order.in_transit(&theft),
        At::Install(_, installed) => installed == id,
        _ => false,
    });
    let in_agents = state.agents.iter().filter(|agent| match agent {
        Agent::Stealing(theft) => theft.id == id && table.order.in_transit(theft),
        Agent::Evicting(cpus) => cpus.iter().any(|cpu| cpu.id() == Some(id)),
        Agent::Idle | Agent::Choose | Agent::Unlock => false,
    });
    let in_table = state.table.iter().filter(|entry| **entry == Some(id)).count();
    in_table + usize::from(state.free & 1 << id != 0) + in_threads.count() + in_agents.count()
}

/// Returns `true` if a running thread comes to the end of its work if no other thread takes a step
/// and nothing disturbs it.
fn finishes_alone(table: &Table, state: &State, nr: usize) -> bool {
    let mut alone = *state;
    let mut own = Vec::new();
    for _ in 0..SOLO_STEPS {
        let thread = &alone.threads[nr];
        if thread.on.is_none() || super::is_idle(thread) {
            return true;
        }
        own.clear();
        if thread::can_step(table, &alone, nr) {
            own.push(Action::Thread(nr));
        } else if let Some(cpu) = thread::chooses_for(&alone, nr) {
            table.choices(&alone, nr, cpu, &mut own);
        }
        let Some(&action) = own.first() else { return false };
        alone = table.apply(&alone, action);
    }
    false
}
