//! Symmetry: CPUs, IDs, items, threads and drainers are interchangeable.
//!
//! No step treats any of them by its number. No part of the state refers to a thread or a drainer,
//! so renaming these is sorting.

use super::protocol::Seizure;
use super::state::{
    At, Block, CPUS, CpuNr, Drain, Drainer, Hold, Id, Item, Op, State, Thief, Thread, Work, Write,
};
use crate::symmetry::{orders, rename_set, sorting_orders};

/// The least state among those renamings of `state` that put the CPUs and the items in order of
/// what no renaming changes.
pub(super) fn representative(model: &Seizure, state: &State) -> State {
    let items = [0, 1, 2].map(|item| {
        let is_pushed = |thread: &Thread| thread.pushes(item);
        (state.outside & 1 << item != 0, state.threads.iter().any(is_pushed))
    });
    let names =
        sorting_orders(model.cpus, [0, 1, 2].map(|cpu| trait_of(state, cpu))).flat_map(|cpus| {
            let of_ids = orders(model.ids).iter();
            of_ids.flat_map(move |ids| {
                sorting_orders(model.items, items).map(move |items| [cpus, ids, items])
            })
        });
    let renamed = names.map(|[cpus, ids, items]| {
        let renaming = Renaming { cpus, ids, items };
        let mut renamed = renaming.state(state);
        renamed.threads[..usize::from(model.threads)].sort_unstable();
        renamed.drainers[..usize::from(model.drainers)].sort_unstable();
        renamed
    });
    renamed.min().expect("some order sorts the CPUs and the items")
}

/// What a CPU keeps under every name.
fn trait_of(state: &State, cpu: usize) -> (bool, bool, usize) {
    if cpu >= CPUS {
        return (false, false, 0);
    }
    let runs = state.threads.iter().any(|thread| thread.on == Some(cpu as CpuNr));
    (state.table[cpu].is_some(), runs, state.buffers[cpu].iter().count())
}

/// New names for CPUs, IDs and items.
struct Renaming<'a> {
    cpus: &'a [u8; 3],
    ids: &'a [u8; 3],
    items: &'a [u8; 3],
}

impl Renaming<'_> {
    fn state(&self, state: &State) -> State {
        let mut renamed = *state;
        for (old, entry) in (0..).zip(state.table) {
            renamed.table[usize::from(self.cpu(old))] = entry.map(|id| self.id(id));
        }
        for (old, block) in (0..).zip(state.blocks) {
            renamed.blocks[usize::from(self.id(old))] = self.block(block);
        }
        for (old, buffer) in (0..).zip(state.buffers) {
            let mut buffer = buffer;
            buffer.iter_mut().for_each(|write| *write = self.write(*write));
            renamed.buffers[usize::from(self.cpu(old))] = buffer;
        }
        renamed.mask = rename_set(state.mask, self.ids);
        renamed.outside = rename_set(state.outside, self.items);
        for thread in &mut renamed.threads {
            thread.on = thread.on.map(|cpu| self.cpu(cpu));
            thread.work = thread.work.map(|work| self.work(work));
        }
        renamed.drainers = state.drainers.map(|drainer| self.drainer(drainer));
        renamed.thief = match state.thief {
            Thief::Idle => Thief::Idle,
            Thief::Fence(cpu, id) => Thief::Fence(self.cpu(cpu), self.id(id)),
            Thief::Install(id) => Thief::Install(self.id(id)),
        };
        renamed
    }

    fn block(&self, block: Block) -> Block {
        Block { slots: block.slots.map(|slot| slot.map(|item| self.item(item))), ..block }
    }

    fn write(&self, write: Write) -> Write {
        match write {
            Write::Word(id, word) => Write::Word(self.id(id), word),
            Write::Slot(id, slot, item) => Write::Slot(self.id(id), slot, self.item(item)),
        }
    }

    fn work(&self, work: Work) -> Work {
        let op = match work.op {
            Op::Push(item) => Op::Push(self.item(item)),
            Op::Pop => Op::Pop,
        };
        let at = match work.at {
            At::Start | At::Begin => work.at,
            At::Load(id) => At::Load(self.id(id)),
            At::Slot(id, items) => At::Slot(self.id(id), items),
            At::Commit { id, value, popped } => {
                let popped = popped.map(|item| self.item(item));
                At::Commit { id: self.id(id), value, popped }
            }
            At::Check(id) => At::Check(self.id(id)),
            At::Own(id) => At::Own(self.id(id)),
            At::Mark(id) => At::Mark(self.id(id)),
            At::Publish(id) => At::Publish(self.id(id)),
        };
        Work { op, at }
    }

    fn drainer(&self, drainer: Drainer) -> Drainer {
        let at = match drainer.at {
            Drain::Seize(hold) => Drain::Seize(Hold {
                id: self.id(hold.id),
                reached: rename_set(hold.reached, self.cpus),
                ..hold
            }),
            at => at,
        };
        let left = rename_set(drainer.left, self.ids);
        let owed = rename_set(drainer.owed, self.items);
        Drainer { at, left, owed }
    }

    fn cpu(&self, cpu: CpuNr) -> CpuNr {
        self.cpus[usize::from(cpu)]
    }

    fn id(&self, id: Id) -> Id {
        self.ids[usize::from(id)]
    }

    fn item(&self, item: Item) -> Item {
        self.items[usize::from(item)]
    }
}
