//! Switches, exits and thefts, step by step.

use super::Rules;
use super::state::{Agent, Cpu, State, Step, Thief, ThiefStep};
use crate::kernel::Memory;
use crate::kernel::state::{CpuNr, Id, Slot, Then};

/// Takes the run-queue lock and stores the new current thread.
pub(super) fn switch(rules: &Rules, state: &mut State, nr: CpuNr, ours: bool) {
    let then = if state.cpu(nr).current { Then::Outgoing } else { Then::Incoming };
    begin(rules, state.cpu_mut(nr), ours, then);
}

/// Takes the run-queue lock; the current thread stops being a thread of the process.
pub(super) fn exit(rules: &Rules, state: &mut State, nr: CpuNr) {
    begin(rules, state.cpu_mut(nr), false, Then::Exiting);
}

/// Begins a switch. The lock operation drains the store buffer; the store of the current thread
/// then waits in it.
fn begin(rules: &Rules, cpu: &mut Cpu, current: bool, then: Then) {
    cpu.drain();
    (cpu.current, cpu.held) = (current, None);
    cpu.step = after_barrier(then);
    match rules.memory {
        Memory::Sequential => cpu.drain(),
        Memory::Buffered { barrier: true } => cpu.step = Step::Barrier(then),
        Memory::Buffered { barrier: false } => {}
    }
}

fn after_barrier(then: Then) -> Step {
    match then {
        Then::Outgoing => Step::LoadOut,
        Then::Incoming => Step::LoadIn,
        Then::Exiting => Step::LoadExit,
    }
}

/// Takes the next step of the switch in progress.
pub(super) fn step(state: &mut State, nr: CpuNr) {
    let now = state.cpu(nr).step;
    if !matches!(now, Step::LoadOut | Step::LoadIn | Step::LoadExit | Step::Install(_)) {
        // An atomic read-modify-write, or the barrier.
        state.cpu_mut(nr).drain();
    }
    let slot = state.cpu(nr).slot;
    let next = match now {
        Step::Rest | Step::Take => unreachable!("not a step without a choice"),
        Step::Barrier(then) => after_barrier(then),
        Step::LoadOut => match slot {
            Slot::Lazy(id) => Step::ReleaseOut(id),
            Slot::Unset | Slot::Valid(_) => after_outgoing(state.cpu(nr)),
        },
        Step::ReleaseOut(id) if state.cpu_mut(nr).exchange(Slot::Lazy(id), Slot::Unset) => {
            Step::ClearOut(id)
        }
        Step::ReleaseOut(_) => after_outgoing(state.cpu(nr)),
        Step::ClearOut(id) => {
            state.clear(id);
            after_outgoing(state.cpu(nr))
        }
        Step::LoadIn => match slot {
            Slot::Valid(id) => hold(state.cpu_mut(nr), id),
            Slot::Lazy(id) => Step::ReleaseIn(id),
            Slot::Unset => Step::Take,
        },
        Step::ReleaseIn(id) if state.cpu_mut(nr).exchange(Slot::Lazy(id), Slot::Unset) => {
            Step::ClearIn(id)
        }
        Step::ReleaseIn(_) => Step::Take,
        Step::ClearIn(id) => {
            state.clear(id);
            Step::Take
        }
        Step::Install(id) => {
            state.install(nr, id);
            hold(state.cpu_mut(nr), id)
        }
        Step::LoadExit => release_or_rest(slot),
        Step::ReleaseExit(from) if state.cpu_mut(nr).exchange(from, Slot::Unset) => {
            Step::ClearExit(from.id().expect("only set slots are released"))
        }
        Step::ReleaseExit(_) => release_or_rest(slot),
        Step::ClearExit(id) => {
            state.clear(id);
            Step::Rest
        }
    };
    state.cpu_mut(nr).step = next;
}

fn after_outgoing(cpu: &Cpu) -> Step {
    if cpu.current { Step::LoadIn } else { Step::Rest }
}

/// Gives the ID to the current thread, which holds it from here on.
fn hold(cpu: &mut Cpu, id: Id) -> Step {
    cpu.held = Some(id);
    Step::Rest
}

fn release_or_rest(slot: Slot) -> Step {
    if slot == Slot::Unset { Step::Rest } else { Step::ReleaseExit(slot) }
}

/// Tests and sets a free ID in the allocator.
pub(super) fn take(state: &mut State, nr: CpuNr, id: Id) {
    state.bitmap |= 1 << id;
    let cpu = state.cpu_mut(nr);
    cpu.drain();
    cpu.step = Step::Install(id);
}

/// Begins a theft: loads a valid slot, and locks the run queue of the CPU that will get the ID.
pub(super) fn steal(
    rules: &Rules,
    state: &mut State,
    agent: usize,
    from: CpuNr,
    to: Option<CpuNr>,
) {
    let id = state.cpu(from).slot.id().expect("thieves go for valid slots");
    state.agents[agent] =
        Agent::Thief(Thief { id, from, to, same_version: rules.tagged, step: ThiefStep::Mark });
}

/// Takes the next step of a thief.
pub(super) fn step_agent(rules: &Rules, state: &mut State, agent: usize) {
    let Agent::Thief(mut thief) = state.agents[agent] else { unreachable!("nothing in flight") };
    state.agents[agent] =
        if advance(rules, state, &mut thief) { Agent::Thief(thief) } else { Agent::Idle };
}

/// Takes one step of a thief; returns `false` when it is over.
fn advance(rules: &Rules, state: &mut State, thief: &mut Thief) -> bool {
    let tag_matches = thief.same_version || !rules.tagged;
    let may_look = !rules.locks_source || rules.can_lock(state, thief.from);
    let (valid, lazy) = (Slot::Valid(thief.id), Slot::Lazy(thief.id));
    let from = state.cpu_mut(thief.from);
    thief.step = match thief.step {
        ThiefStep::Mark if tag_matches && from.exchange(valid, lazy) => ThiefStep::Look,
        ThiefStep::Look if may_look && !from.seen => ThiefStep::Release,
        ThiefStep::Release if tag_matches && from.exchange(lazy, Slot::Unset) => {
            thief.same_version = false;
            ThiefStep::Settle
        }
        ThiefStep::Mark | ThiefStep::Look | ThiefStep::Release => return false,
        ThiefStep::Settle => {
            match thief.to {
                Some(to) => state.install(to, thief.id),
                None => state.clear(thief.id),
            }
            return false;
        }
    };
    true
}
