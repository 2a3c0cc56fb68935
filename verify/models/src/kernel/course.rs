//! Work that ends before any other actor takes a step.
//!
//! This answers how many actors must be late for a failure. If all threads take one step at a time,
//! a counter-example does not show that: it may depend on two agents that wait for each other's
//! next step. Here all kinds of work except one agent's may be made whole: begun and ended without
//! a step of any other actor in between. A remaining counter-example needs that one agent to be
//! late, and no other thread.
//!
//! States in the middle of whole work are not checked; the other configurations do that.

use super::protocol::{Action, Kernel};
use super::state::{Agent, CpuStep, Scanner, ScannerStep, State};

/// Takes `action`, and the steps that follow if it begins whole work; none if that would have to
/// wait for a thread. `visit` sees each step and the state before it.
pub(super) fn run(
    kernel: &Kernel,
    before: &State,
    action: Action,
    mut visit: impl FnMut(&State, Action),
) -> Option<State> {
    let mut state = *before;
    let mut step = Some(action);
    while let Some(now) = step {
        visit(&state, now);
        kernel.act(&mut state, now);
        step = following(kernel, &state, action)?;
    }
    Some(state)
}

/// Returns the next step of whole work, if there is one; `None` if it must wait.
fn following(kernel: &Kernel, state: &State, begun: Action) -> Option<Option<Action>> {
    match begun {
        Action::Switch(cpu, _) | Action::Exit(cpu) if kernel.undelayed.switches => {
            if state.cpu(cpu).step == CpuStep::Rest {
                return Some(None);
            }
            super::cpu::can_step(kernel, state, cpu).then_some(Some(Action::Cpu(cpu)))
        }
        Action::Move(agent, ..) | Action::Scan(agent, _) if agent == kernel.spare() => {
            Some(match state.agents[usize::from(agent)] {
                Agent::Idle => None,
                // No thread comes in between, so that every order of visits ends in the same state.
                Agent::Scanner(Scanner { step: ScannerStep::Visit, todo, .. }) => {
                    Some(Action::Visit(agent, todo.trailing_zeros() as u8))
                }
                Agent::Scanner(_) | Agent::Mover(_) => Some(Action::Agent(agent)),
            })
        }
        _ => Some(None),
    }
}
