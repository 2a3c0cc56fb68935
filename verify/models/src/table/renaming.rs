//! Symmetry: CPUs, IDs, threads and agents are interchangeable.
//!
//! No step treats any of them by its number, so renaming them maps steps to steps. Only threads
//! with and without a signal handler differ. No part of the state refers to a thread or an agent,
//! so renaming these is sorting.

use super::protocol::Table;
use super::state::{Add, Agent, At, CPUS, Eviction, Id, State, Theft};
use crate::symmetry::{least, orders, rename_set, sorting_orders};

/// Returns the least state among those renamings of `state` that sort the CPUs by whether they have
/// an ID and run a thread.
pub(super) fn representative(table: &Table, state: &State) -> State {
    let runs = |cpu| state.threads.iter().any(|thread| thread.on == Some(cpu));
    let sorting = sorting_orders(
        table.cpus,
        [0, 1, 2].map(|cpu| (state.table[usize::from(cpu)].is_some(), runs(cpu))),
    );
    let both =
        sorting.flat_map(|cpus| orders(table.ids).iter().map(move |ids| Renaming { cpus, ids }));
    let head = |renaming: &Renaming| (renaming.table(state), rename_set(state.free, renaming.ids));
    least(both, head, |renaming| {
        let mut renamed = renaming.state(state);
        let (with_handler, without) =
            renamed.threads[..usize::from(table.threads)].split_at_mut(table.handlers.into());
        with_handler.sort_unstable();
        without.sort_unstable();
        renamed.agents[..usize::from(table.agents)].sort_unstable();
        renamed
    })
}

/// New names for CPUs and IDs.
struct Renaming<'a> {
    cpus: &'a [u8; 3],
    ids: &'a [u8; 3],
}

impl Renaming<'_> {
    fn table(&self, state: &State) -> [Option<Id>; CPUS] {
        let mut table = state.table;
        for (old, entry) in (0..).zip(state.table) {
            table[usize::from(self.cpu(old))] = entry.map(|id| self.id(id));
        }
        table
    }

    fn state(&self, state: &State) -> State {
        let mut renamed = State { table: self.table(state), ..*state };
        renamed.free = rename_set(state.free, self.ids);
        for thread in &mut renamed.threads {
            thread.on = thread.on.map(|cpu| self.cpu(cpu));
            self.add(&mut thread.add);
            if let Some(add) = &mut thread.interrupted {
                self.add(add);
            }
        }
        for agent in &mut renamed.agents {
            match agent {
                Agent::Stealing(theft) => self.theft(theft),
                Agent::Evicting(cpus) => self.evictions(cpus),
                Agent::Idle | Agent::Choose | Agent::Unlock => {}
            }
        }
        renamed
    }

    fn add(&self, add: &mut Add) {
        match &mut add.at {
            At::Unarmed(cpu) | At::HasCpu(cpu) | At::LoadEntry(cpu) => *cpu = self.cpu(*cpu),
            At::HasId(id) => *id = self.id(*id),
            At::Loaded(read) => read.id = self.id(read.id),
            At::Install(cpu, id) => (*cpu, *id) = (self.cpu(*cpu), self.id(*id)),
            At::Stealing(theft) => self.theft(theft),
            _ => {}
        }
    }

    fn theft(&self, theft: &mut Theft) {
        theft.id = self.id(theft.id);
        theft.victim = theft.victim.map(|cpu| self.cpu(cpu));
        theft.to = theft.to.map(|cpu| self.cpu(cpu));
    }

    fn evictions(&self, cpus: &mut [Eviction; CPUS]) {
        let old = *cpus;
        for (cpu, eviction) in (0..).zip(old) {
            cpus[usize::from(self.cpu(cpu))] = match eviction {
                Eviction::Untouched => Eviction::Untouched,
                Eviction::Unset(id) => Eviction::Unset(self.id(id)),
                Eviction::Fenced(id) => Eviction::Fenced(self.id(id)),
            };
        }
    }

    fn cpu(&self, cpu: u8) -> u8 {
        self.cpus[usize::from(cpu)]
    }

    fn id(&self, id: u8) -> u8 {
        self.ids[usize::from(id)]
    }
}
