//! The common rules of generations b to d, and nothing else: one model that covers all three.
//!
//! The generations differ in *when* a thread takes an ID away and *which* ID an allocator picks.
//! None of it decides which thread or CPU owns a bit. Here all of it is left open: an allocator
//! takes any free ID; any agent at any time takes the ID of any CPU with a valid slot away, and
//! frees it or gives it to any CPU without one. Every step of b, c and d that changes a slot, a bit
//! or a current thread is a step of this model or several. So a property that no execution of it
//! breaks holds for every scan (however many at once, in any order, with any time stamps and
//! weight), every migration, and every interpretation of the policy. Threads are not counted: any
//! number of them. A mechanical check, state by state, shows that the other model has no step that
//! this one lacks: see [`covers`].
//!
//! # Assumptions
//!
//! Those of [`kernel`](crate::kernel) with the numbers 2, 3, 4, 7, 11, 12 and 13. In place of the
//! others:
//!
//! - Loads on the way to an ID and failed test-and-sets change nothing and are left out; so are the
//!   slow lock, recent IDs, time stamps, and the first look of a migration at the source's current
//!   thread (the model continues or ends with either result).
//! - A migration that may give the ID to its destination holds the destination's run-queue lock
//!   from the load of the source's slot.

pub mod covers;
mod narrate;
mod properties;
mod renaming;
pub mod state;
mod steps;

use crate::explore::Model;
use crate::kernel::Memory;
use crate::kernel::state::{CpuNr, Id, Slot};
use state::{AGENTS, Agent, CPUS, Cpu, State, Step, ThiefStep};

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Number of CPUs, and of IDs.
    pub cpus: u8,
    /// Number of remote agents.
    pub agents: u8,
    /// `true` if slots carry a version tag.
    pub tagged: bool,
    /// `true` if an agent tries the source's run-queue lock before its last look, and holds it
    /// until its second compare-exchange.
    pub locks_source: bool,
    /// The way in which stores reach the other CPUs.
    pub memory: Memory,
    /// `true` if two running threads with one ID end the search. `false` shows the further
    /// consequences of such a state.
    pub sharing_ends: bool,
    /// `true` if states that differ only by the names of CPUs, IDs and agents count as one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A CPU takes its run-queue lock and stores its new current thread: one of ours, or none.
    Switch(CpuNr, bool),
    /// The current thread of a CPU begins to exit.
    Exit(CpuNr),
    /// A CPU takes the next step of its switch.
    Cpu(CpuNr),
    /// A CPU's allocator takes a free ID of its choice.
    Take(CpuNr, Id),
    /// A CPU's store buffer drains.
    Drain(CpuNr),
    /// An agent loads a CPU's valid slot to take the ID away, for another CPU (whose run queue it
    /// locks) or for no thread.
    Steal(usize, CpuNr, Option<CpuNr>),
    /// An agent takes its next step.
    Agent(usize),
    /// An agent gives up: before it has changed anything, or because it did not get the source's
    /// lock.
    GiveUp(usize),
}

impl Rules {
    /// Returns a configuration with three CPUs, a number of agents, sequential memory.
    #[must_use]
    pub const fn new(agents: u8, tagged: bool) -> Self {
        Self {
            cpus: CPUS as u8,
            agents,
            tagged,
            locks_source: false,
            memory: Memory::Sequential,
            sharing_ends: true,
            symmetric: true,
        }
    }

    /// Returns `true` if the run-queue lock of `cpu` is free.
    fn can_lock(&self, state: &State, cpu: CpuNr) -> bool {
        let held = state.agents.iter().any(|agent| match agent {
            Agent::Idle => false,
            Agent::Thief(thief) => {
                let releases = thief.from == cpu && thief.step == ThiefStep::Release;
                thief.to == Some(cpu) || (self.locks_source && releases)
            }
        });
        state.cpu(cpu).step == Step::Rest && !held
    }

    fn cpu_actions(&self, state: &State, nr: CpuNr, out: &mut Vec<Action>) {
        let cpu = state.cpu(nr);
        match cpu.step {
            Step::Rest if self.can_lock(state, nr) => {
                out.push(Action::Switch(nr, true));
                if cpu.current {
                    out.extend([Action::Switch(nr, false), Action::Exit(nr)]);
                }
            }
            Step::Rest => {}
            Step::Take => {
                let free = (0..self.cpus).filter(|id| state.bitmap & 1 << id == 0);
                out.extend(free.map(|id| Action::Take(nr, id)));
            }
            _ => out.push(Action::Cpu(nr)),
        }
        if cpu.seen != cpu.current {
            out.push(Action::Drain(nr));
        }
    }

    fn thefts(&self, state: &State, agent: usize, out: &mut Vec<Action>) {
        for from in (0..self.cpus).filter(|&from| matches!(state.cpu(from).slot, Slot::Valid(_))) {
            out.push(Action::Steal(agent, from, None));
            let takers = (0..self.cpus)
                .filter(|&to| state.cpu(to).slot == Slot::Unset && self.can_lock(state, to));
            out.extend(takers.map(|to| Action::Steal(agent, from, Some(to))));
        }
    }
}

impl Model for Rules {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let cpu =
            Cpu { current: false, seen: false, held: None, slot: Slot::Unset, step: Step::Rest };
        vec![State { cpus: [cpu; CPUS], agents: [Agent::Idle; AGENTS], bitmap: 0, fault: None }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        (0..self.cpus).for_each(|cpu| self.cpu_actions(state, cpu, out));
        for (nr, agent) in state.agents[..usize::from(self.agents)].iter().enumerate() {
            match agent {
                Agent::Idle => self.thefts(state, nr, out),
                Agent::Thief(thief) => {
                    out.push(Action::Agent(nr));
                    // The source's lock may also be held for a reason that is not modelled.
                    let tries_lock = self.locks_source && thief.step == ThiefStep::Look;
                    let may_give_up = tries_lock || thief.step == ThiefStep::Mark;
                    out.extend(may_give_up.then_some(Action::GiveUp(nr)));
                }
            }
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Switch(cpu, ours) => steps::switch(self, &mut next, cpu, ours),
            Action::Exit(cpu) => steps::exit(self, &mut next, cpu),
            Action::Cpu(cpu) => steps::step(&mut next, cpu),
            Action::Take(cpu, id) => steps::take(&mut next, cpu, id),
            Action::Drain(cpu) => next.cpu_mut(cpu).drain(),
            Action::Steal(agent, from, to) => steps::steal(self, &mut next, agent, from, to),
            Action::Agent(agent) => steps::step_agent(self, &mut next, agent),
            Action::GiveUp(agent) => next.agents[agent] = Agent::Idle,
        }
        next
    }

    fn canonical(&self, state: &State) -> State {
        if self.symmetric { renaming::representative(self, state) } else { *state }
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        properties::broken(self, state)
    }

    fn begins(&self, _: &State, action: Action) -> bool {
        matches!(action, Action::Switch(..) | Action::Exit(_) | Action::Steal(..))
    }

    fn at_rest(&self, state: &State) -> bool {
        state.cpus.iter().all(|cpu| cpu.step == Step::Rest) && state.agents == [Agent::Idle; AGENTS]
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        narrate::narrate(before, action)
    }

    fn picture(&self, state: &State) -> String {
        narrate::picture(self, state)
    }
}
