//! The explored states of the ownership modes are not trivial: every mode and both changes occur.

use std::collections::BTreeSet;

use percid_models::explore::Model;
use percid_models::modes::Modes;
use percid_models::modes::state::{Cid, CpuStep, State};

fn reachable(modes: &Modes) -> BTreeSet<State> {
    let mut seen: BTreeSet<State> = modes.initial().into_iter().collect();
    let mut pending: Vec<State> = seen.iter().copied().collect();
    while let Some(state) = pending.pop() {
        let mut actions = Vec::new();
        modes.actions(&state, &mut actions);
        let next = actions.into_iter().map(|action| modes.canonical(&modes.apply(&state, action)));
        pending.extend(next.filter(|next| seen.insert(*next)));
    }
    seen
}

#[test]
fn both_changes_of_mode_occur_in_every_configuration() {
    let four = |modes| Modes { threads: 4, ..modes };
    let [new, scarce] = [Modes::new(), Modes::scarce(2)];
    let three_cpus = [Modes { cpus: 3, ..new }, Modes::scarce(3)].map(four);
    for modes in [new, four(new), scarce, four(scarce)].into_iter().chain(three_cpus) {
        let states = reachable(&modes);
        let seen: BTreeSet<_> = states.iter().map(|state| state.mode).collect();
        assert_eq!(seen.len(), 4, "{modes:?}");
        let some = |holds: fn(&State) -> bool| assert!(states.iter().any(holds), "{modes:?}");
        some(|state| state.threads.iter().any(|t| matches!(t.cid, Cid::OfCpu(_))));
        some(|state| state.cpus.iter().any(|cpu| matches!(cpu.step, CpuStep::Free(_))));
        some(|state| state.cpus.iter().any(|cpu| matches!(cpu.step, CpuStep::Converge { .. })));
    }
}
