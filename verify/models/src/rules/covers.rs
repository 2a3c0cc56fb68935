//! The mapping from the models of the generations to the rules: the abstraction of a state.
//!
//! If every step of a generation is a step of the rules, or changes nothing in the abstraction,
//! then every property of all reachable states of the rules holds in all of the generation.
//! [`uncovered`] searches for a step that is neither.

use std::collections::HashSet;

use super::Rules;
use super::state::{AGENTS, Agent, Cpu, State, Step, Thief, ThiefStep};
use crate::explore::Model;
use crate::kernel::Kernel;
use crate::kernel::state as exact;
use crate::kernel::state::{ClearStep, CpuNr, CpuStep, MoverStep, ScannerStep};

/// The result of [`uncovered`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// States of the generation that were visited, up to renaming.
    pub states: usize,
    /// Steps that were compared.
    pub steps: u64,
    /// A step of the generation that the rules lack, in words.
    pub gap: Option<String>,
}

impl Rules {
    /// Returns the rules for the CPUs, agents and memory of a generation's configuration.
    #[must_use]
    pub fn matching(kernel: &Kernel) -> Self {
        Self {
            cpus: kernel.cpus,
            agents: kernel.agents.len() as u8,
            tagged: kernel.tagged,
            locks_source: kernel.locks_source,
            memory: kernel.memory,
            sharing_ends: false,
            symmetric: false,
        }
    }
}

/// Visits every reachable state of a generation, and looks for a step that is neither a step of the
/// rules nor none at all.
#[must_use]
pub fn uncovered(kernel: &Kernel, rules: &Rules) -> Coverage {
    let mut seen: HashSet<exact::State> =
        kernel.initial().iter().map(|state| kernel.canonical(state)).collect();
    let mut pending: Vec<exact::State> = seen.iter().copied().collect();
    let mut coverage = Coverage { states: 0, steps: 0, gap: None };
    while let Some(state) = pending.pop() {
        coverage.states += 1;
        let allowed = successors(rules, &abstraction(kernel, &state));
        let mut actions = Vec::new();
        kernel.actions(&state, &mut actions);
        for action in actions {
            coverage.steps += 1;
            let next = kernel.apply(&state, action);
            if !allowed.contains(&abstraction(kernel, &next)) {
                let (actor, step) = kernel.narrate(&state, action);
                coverage.gap = Some(format!(
                    "{actor}: {step}: {} -> {}",
                    kernel.picture(&state),
                    kernel.picture(&next)
                ));
                return coverage;
            }
            let next = kernel.canonical(&next);
            if kernel.broken(&next).is_none() && seen.insert(next) {
                pending.push(next);
            }
        }
    }
    coverage
}

/// Returns `state` itself and the states after one step of the rules.
fn successors(rules: &Rules, state: &State) -> Vec<State> {
    let mut actions = Vec::new();
    rules.actions(state, &mut actions);
    let stepped = actions.into_iter().map(|action| rules.apply(state, action));
    std::iter::once(*state).chain(stepped).collect()
}

/// Returns the abstraction of a state in the rules.
fn abstraction(kernel: &Kernel, state: &exact::State) -> State {
    let mut agents = [Agent::Idle; AGENTS];
    for (agent, exact) in agents.iter_mut().zip(&state.agents[..kernel.agents.len()]) {
        *agent = thief(exact).map_or(Agent::Idle, Agent::Thief);
    }
    State {
        cpus: [0, 1, 2].map(|nr| cpu(state, nr)),
        agents,
        bitmap: state.bitmap,
        fault: state.fault,
    }
}

fn cpu(state: &exact::State, nr: CpuNr) -> Cpu {
    let exact = state.cpu(nr);
    let (step, held) = match exact.step {
        CpuStep::Rest => (Step::Rest, state.holder(nr).and_then(|(_, id)| id)),
        // The rules have no stamps and no recent IDs: the thread holds its ID one step earlier.
        CpuStep::StampIn(id) | CpuStep::Remember(id) => (Step::Rest, Some(id)),
        CpuStep::Barrier(then) => (Step::Barrier(then), None),
        CpuStep::StampOut | CpuStep::LoadOut => (Step::LoadOut, None),
        CpuStep::ReleaseOut(id) => (Step::ReleaseOut(id), None),
        CpuStep::ClearOut(id) => (Step::ClearOut(id), None),
        CpuStep::LoadIn => (Step::LoadIn, None),
        CpuStep::ReleaseIn(id) => (Step::ReleaseIn(id), None),
        CpuStep::ClearIn(id) => (Step::ClearIn(id), None),
        CpuStep::Unlock(id) | CpuStep::StampNew(id) | CpuStep::Install(id) => {
            (Step::Install(id), None)
        }
        CpuStep::LoadExit => (Step::LoadExit, None),
        CpuStep::ReleaseExit(slot) => (Step::ReleaseExit(slot), None),
        CpuStep::ClearExit(id) => (Step::ClearExit(id), None),
        CpuStep::Leave => (Step::Rest, None),
        CpuStep::LoadShrink
        | CpuStep::Shrink { .. }
        | CpuStep::LoadRecent { .. }
        | CpuStep::TakeRecent(_)
        | CpuStep::LoadMax
        | CpuStep::Raise(_)
        | CpuStep::TakeNew(_)
        | CpuStep::LoadBitmap
        | CpuStep::TakeFirst(_)
        | CpuStep::Lock => (Step::Take, None),
    };
    Cpu { current: exact.current.is_some(), seen: exact.seen_running, held, slot: exact.slot, step }
}

fn thief(agent: &exact::Agent) -> Option<Thief> {
    match *agent {
        exact::Agent::Idle => None,
        exact::Agent::Mover(mover) => {
            let (step, id) = match mover.step {
                MoverStep::LoadToRecent | MoverStep::LoadFrom | MoverStep::RememberTo(_) => {
                    return None;
                }
                MoverStep::Look(id) | MoverStep::Mark(id) => (ThiefStep::Mark, id),
                MoverStep::LookAgain(id) => (ThiefStep::Look, id),
                MoverStep::Release(id) => (ThiefStep::Release, id),
                MoverStep::ForgetRecent(id)
                | MoverStep::Clear(id)
                | MoverStep::StampTo(id)
                | MoverStep::InstallTo(id) => (ThiefStep::Settle, id),
            };
            let to = (!mover.settled).then_some(mover.to);
            Some(Thief { id, from: mover.from, to, same_version: mover.same_version, step })
        }
        exact::Agent::Scanner(scanner) => {
            let ScannerStep::Clear(clear) = scanner.step else { return None };
            let step = match clear.step {
                ClearStep::Mark => ThiefStep::Mark,
                ClearStep::Look => ThiefStep::Look,
                ClearStep::Release => ThiefStep::Release,
                ClearStep::Clear => ThiefStep::Settle,
            };
            Some(Thief {
                id: clear.id,
                from: clear.cpu,
                to: None,
                same_version: clear.same_version,
                step,
            })
        }
    }
}
