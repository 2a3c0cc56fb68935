//! Symmetry: CPUs, IDs, threads and visitors are interchangeable.
//!
//! No step treats any of them by its number. No part of the state refers to a thread or a visitor,
//! so renaming these is sorting.

use super::protocol::Local;
use super::state::{At, CPUS, CpuNr, Hold, Id, State, Thief, Visit, Visitor, Work, Write};
use crate::symmetry::{orders, rename_set, sorting_orders};

/// The least state among those renamings of `state` that put the CPUs in order of what no renaming
/// changes.
pub(super) fn representative(model: &Local, state: &State) -> State {
    let cpus = sorting_orders(model.cpus, [0, 1, 2].map(|cpu| trait_of(state, cpu)));
    let names = cpus.flat_map(|cpus| orders(model.ids).iter().map(move |ids| (cpus, ids)));
    let renamed = names.map(|(cpus, ids)| {
        let mut renamed = Renaming { cpus, ids }.state(state);
        renamed.threads[..usize::from(model.threads)].sort_unstable();
        renamed.visitors[..usize::from(model.visitors)].sort_unstable();
        renamed
    });
    renamed.min().expect("some order sorts the CPUs")
}

/// What a CPU keeps under every name.
fn trait_of(state: &State, cpu: usize) -> (bool, bool, usize) {
    if cpu >= CPUS {
        return (false, false, 0);
    }
    let runs = state.threads.iter().any(|thread| thread.on == Some(cpu as CpuNr));
    (state.table[cpu].is_some(), runs, state.buffers[cpu].iter().count())
}

/// New names for CPUs and IDs.
struct Renaming<'a> {
    cpus: &'a [u8; 3],
    ids: &'a [u8; 3],
}

impl Renaming<'_> {
    fn state(&self, state: &State) -> State {
        let mut renamed = *state;
        for (old, entry) in (0..).zip(state.table) {
            renamed.table[usize::from(self.cpu(old))] = entry.map(|id| self.id(id));
        }
        for (old, shard) in (0..).zip(state.shards) {
            renamed.shards[usize::from(self.id(old))] = shard;
        }
        for (old, buffer) in (0..).zip(state.buffers) {
            let mut buffer = buffer;
            buffer.iter_mut().for_each(|write| *write = self.write(*write));
            renamed.buffers[usize::from(self.cpu(old))] = buffer;
        }
        renamed.mask = rename_set(state.mask, self.ids);
        for thread in &mut renamed.threads {
            thread.on = thread.on.map(|cpu| self.cpu(cpu));
            thread.work = thread.work.map(|work| Work { at: self.at(work.at), ..work });
        }
        renamed.visitors = state.visitors.map(|visitor| self.visitor(visitor));
        renamed.thief = match state.thief {
            Thief::Idle => Thief::Idle,
            Thief::Fence(cpu, id) => Thief::Fence(self.cpu(cpu), self.id(id)),
            Thief::Install(id) => Thief::Install(self.id(id)),
        };
        renamed
    }

    fn write(&self, write: Write) -> Write {
        Write { id: self.id(write.id), ..write }
    }

    fn at(&self, at: At) -> At {
        match at {
            At::Start => At::Start,
            At::Look(id) => At::Look(self.id(id)),
            At::Load(id) => At::Load(self.id(id)),
            At::Commit(id) => At::Commit(self.id(id)),
            At::Exchange(id) => At::Exchange(self.id(id)),
            At::LookAgain(id) => At::LookAgain(self.id(id)),
            At::PutBack(id) => At::PutBack(self.id(id)),
            At::Make(id) => At::Make(self.id(id)),
            At::Mark(id) => At::Mark(self.id(id)),
            At::Inside(id) => At::Inside(self.id(id)),
        }
    }

    fn visitor(&self, visitor: Visitor) -> Visitor {
        let at = match visitor.at {
            Visit::Shard(hold) => Visit::Shard(Hold {
                id: self.id(hold.id),
                reached: rename_set(hold.reached, self.cpus),
                ..hold
            }),
            at => at,
        };
        let [left, owed] = [visitor.left, visitor.owed].map(|set| rename_set(set, self.ids));
        Visitor { at, left, owed, ..visitor }
    }

    fn cpu(&self, cpu: CpuNr) -> CpuNr {
        self.cpus[usize::from(cpu)]
    }

    fn id(&self, id: Id) -> Id {
        self.ids[usize::from(id)]
    }
}
