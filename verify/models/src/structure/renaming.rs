//! Symmetry: CPUs, IDs, items, threads and visitors are interchangeable.
//!
//! No step treats any of them by its number. No part of the state refers to a thread or a visitor,
//! so renaming these is sorting.

use super::state::{CPUS, CpuNr, Hold, Id, Set, State, Thief, Visit, Visitor};
use super::{Protocol, Structure};
use crate::symmetry::{least, orders, rename_set, sorting_orders};

/// Returns the least state among those renamings of `state` that sort the CPUs and the items by the
/// properties that no renaming changes.
pub(super) fn representative<P: Protocol>(model: &Structure<P>, state: &State<P>) -> State<P> {
    let items = [0, 1, 2].map(|item| P::trait_of_item(state, item));
    let cpus = sorting_orders(model.cpus, [0, 1, 2].map(|cpu| trait_of(state, cpu)));
    let names = cpus.flat_map(|cpus| {
        orders(model.ids).iter().flat_map(move |ids| {
            let items = sorting_orders(model.protocol.items(), items);
            items.map(move |items| Renaming { cpus, ids, items })
        })
    });
    least(
        names,
        |names| names.table(state),
        |names| {
            let mut renamed = names.state(state);
            renamed.threads[..usize::from(model.threads)].sort_unstable();
            renamed.visitors[..usize::from(model.visitors)].sort_unstable();
            renamed
        },
    )
}

/// Returns the data of a CPU that stays the same under every name.
fn trait_of<P: Protocol>(state: &State<P>, cpu: usize) -> (bool, bool, usize) {
    if cpu >= CPUS {
        return (false, false, 0);
    }
    let runs = state.threads.iter().any(|thread| thread.on == Some(cpu as CpuNr));
    (state.table[cpu].is_some(), runs, state.buffers[cpu].iter().count())
}

/// New names for CPUs, IDs and items.
#[derive(Debug)]
pub struct Renaming<'a> {
    cpus: &'a [u8; 3],
    ids: &'a [u8; 3],
    items: &'a [u8; 3],
}

impl Renaming<'_> {
    fn table<P: Protocol>(&self, state: &State<P>) -> [Option<Id>; CPUS] {
        let mut table = state.table;
        for (old, entry) in (0..).zip(state.table) {
            table[usize::from(self.cpu(old))] = entry.map(|id| self.id(id));
        }
        table
    }

    fn state<P: Protocol>(&self, state: &State<P>) -> State<P> {
        let mut renamed = *state;
        renamed.table = self.table(state);
        renamed.data = P::rename_data(self, state.data);
        for (old, mut buffer) in (0..).zip(state.buffers) {
            buffer.iter_mut().for_each(|write| *write = P::rename_write(self, *write));
            renamed.buffers[usize::from(self.cpu(old))] = buffer;
        }
        renamed.mask = self.ids(state.mask);
        for thread in &mut renamed.threads {
            thread.on = thread.on.map(|cpu| self.cpu(cpu));
            thread.work = thread.work.map(|work| P::rename_work(self, work));
        }
        renamed.visitors = state.visitors.map(|visitor| self.visitor(visitor));
        renamed.thief = match state.thief {
            Thief::Idle => Thief::Idle,
            Thief::Fence(cpu, id) => Thief::Fence(self.cpu(cpu), self.id(id)),
            Thief::Install(id) => Thief::Install(self.id(id)),
        };
        renamed
    }

    fn visitor<P: Protocol>(&self, visitor: Visitor<P>) -> Visitor<P> {
        let at = match visitor.at {
            Visit::At(hold) => {
                let reached = rename_set(hold.reached, self.cpus);
                Visit::At(Hold { id: self.id(hold.id), reached, ..hold })
            }
            at => at,
        };
        let (left, owed) = (self.ids(visitor.left), P::rename_owed(self, visitor.owed));
        Visitor { at, left, owed, ..visitor }
    }

    fn cpu(&self, cpu: CpuNr) -> CpuNr {
        self.cpus[usize::from(cpu)]
    }

    pub(crate) fn id(&self, id: Id) -> Id {
        self.ids[usize::from(id)]
    }

    pub(crate) fn ids(&self, ids: Set) -> Set {
        rename_set(ids, self.ids)
    }

    /// Renames data of each ID.
    pub(crate) fn by_id<T: Copy, const N: usize>(&self, things: [T; N]) -> [T; N] {
        let mut renamed = things;
        for (old, thing) in (0..).zip(things) {
            renamed[usize::from(self.id(old))] = thing;
        }
        renamed
    }

    pub(crate) fn item(&self, item: u8) -> u8 {
        self.items[usize::from(item)]
    }

    pub(crate) fn items(&self, items: Set) -> Set {
        rename_set(items, self.items)
    }
}
