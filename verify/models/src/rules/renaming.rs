//! Symmetry: CPUs, IDs and agents are interchangeable; no step treats any of them by its number.

use super::Rules;
use super::state::{Agent, Cpu, State, Step};
use crate::kernel::state::{CpuNr, Id, Slot};
use crate::symmetry::{orders, rename_set, sorting_orders};

/// Returns the least state among those renamings of `state` that put the CPUs in order, IDs aside.
pub(super) fn representative(rules: &Rules, state: &State) -> State {
    let nameless = Renaming { cpus: &[0, 1, 2], ids: &[0; 3] };
    let sorting = sorting_orders(rules.cpus, state.cpus.map(|cpu| nameless.of_cpu(cpu)));
    let both =
        sorting.flat_map(|cpus| orders(rules.cpus).iter().map(move |ids| Renaming { cpus, ids }));
    let renamed = both.map(|renaming| {
        let mut renamed = renaming.state(state);
        renamed.agents[..usize::from(rules.agents)].sort_unstable();
        renamed
    });
    renamed.min().expect("some order sorts the CPUs")
}

/// New names for CPUs and IDs.
struct Renaming<'a> {
    cpus: &'a [u8; 3],
    ids: &'a [u8; 3],
}

impl Renaming<'_> {
    fn state(&self, state: &State) -> State {
        let mut renamed = *state;
        for (old, cpu) in (0..).zip(&state.cpus) {
            *renamed.cpu_mut(self.cpu(old)) = self.of_cpu(*cpu);
        }
        for agent in &mut renamed.agents {
            if let Agent::Thief(thief) = agent {
                thief.id = self.id(thief.id);
                thief.from = self.cpu(thief.from);
                thief.to = thief.to.map(|cpu| self.cpu(cpu));
            }
        }
        renamed.bitmap = rename_set(state.bitmap, self.ids);
        renamed
    }

    fn of_cpu(&self, cpu: Cpu) -> Cpu {
        let held = cpu.held.map(|id| self.id(id));
        Cpu { held, slot: self.slot(cpu.slot), step: self.step(cpu.step), ..cpu }
    }

    fn step(&self, step: Step) -> Step {
        match step {
            Step::ReleaseOut(id) => Step::ReleaseOut(self.id(id)),
            Step::ClearOut(id) => Step::ClearOut(self.id(id)),
            Step::ReleaseIn(id) => Step::ReleaseIn(self.id(id)),
            Step::ClearIn(id) => Step::ClearIn(self.id(id)),
            Step::Install(id) => Step::Install(self.id(id)),
            Step::ReleaseExit(slot) => Step::ReleaseExit(self.slot(slot)),
            Step::ClearExit(id) => Step::ClearExit(self.id(id)),
            Step::Rest
            | Step::Barrier(_)
            | Step::LoadOut
            | Step::LoadIn
            | Step::Take
            | Step::LoadExit => step,
        }
    }

    fn slot(&self, slot: Slot) -> Slot {
        match slot {
            Slot::Unset => Slot::Unset,
            Slot::Valid(id) => Slot::Valid(self.id(id)),
            Slot::Lazy(id) => Slot::Lazy(self.id(id)),
        }
    }

    fn cpu(&self, cpu: CpuNr) -> CpuNr {
        self.cpus[usize::from(cpu)]
    }

    fn id(&self, id: Id) -> Id {
        self.ids[usize::from(id)]
    }
}
