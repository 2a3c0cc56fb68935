//! percid's own protocol: the table from CPU to ID.
//!
//! Threads add forever: a critical section that commits with one store, or the slow path, or the
//! shared slot. Remote agents take IDs away forever, write through them, and free them or give them
//! to another CPU. Only the numbers of CPUs, threads, IDs and agents are bounded. The state space
//! is finite nevertheless, because of the representation of the data.
//!
//! # Representation of the data
//!
//! A word's value does not matter, only whether an increment is lost. A register that holds a
//! loaded word carries one bit: "no thread has stored to the word since". A store from a register
//! without it overwrites an increment; a store from a register with it adds exactly one. So "the
//! final sum equals the adds completed" holds in every execution, of any length, if and only if no
//! such store happens and every add stores exactly once. Both are checked.
//!
//! # Assumptions
//!
//! 1. Memory is sequentially consistent: a thread that reads an entry observes the writes before
//!    its store. The fence is one step: it is a full barrier on the calling and on the fenced CPU,
//!    and the caller does nothing between its beginning and its end.
//! 2. A preemption, a migration, a signal and a fence restart a critical section unless it has
//!    committed. Load and store of the data word are two steps with room for an abort in between,
//!    as on machines without an add to memory.
//! 3. Arming (`rseq_cs`), the load of the CPU number, the load of the entry, and each step of the
//!    slow path are one step each. An access that only the lock's holder makes (to the free IDs, or
//!    for the choice of a victim) is one step with the access next to it.
//! 4. The slow path takes any free ID, or one from any other CPU that has one. The policy chooses.
//! 5. A thread in the slow path can be preempted and moved at every step. It steals for the CPU
//!    that it read once.
//! 6. A thief in the slow path stores its own increment through the stolen ID, with plain accesses,
//!    before it gives the ID on; an agent does the same. An agent may also evict: take the IDs of
//!    several CPUs, fence them (the fence reaches them one by one), and free them all. A fence may
//!    be refused; the victims get their IDs back then.
//! 7. A signal arrives whenever its thread runs, signals are not blocked, and no handler runs on
//!    that thread. The handler adds.
//! 8. The add to the shared slot is one atomic read-modify-write.
//! 9. There may be fewer IDs than CPUs, so that stealing is necessary, whatever number the policy
//!    requires.

mod narrate;
mod properties;
mod protocol;
mod renaming;
pub mod state;
mod theft;
mod thread;

use crate::explore::Model;
use state::{AGENTS, Add, Agent, At, CPUS, CpuNr, Eviction, State, THREADS, Thread};

pub use properties::{CONSERVED, DISTINCT, DOUBLED, LOST, MISSED, OVERWRITTEN, SOLO};
pub use protocol::{Action, Lock, Table};
pub use theft::Order;

impl Table {
    /// Returns the protocol on three CPUs: three threads, two IDs, two agents, no signals.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cpus: CPUS as u8,
            threads: THREADS as u8,
            ids: 2,
            agents: AGENTS as u8,
            handlers: 0,
            exits: false,
            order: Order::Sound,
            lock: Lock::Try,
            blocks_signals: true,
            cpu_inside: true,
            checks_solo: true,
            symmetric: true,
        }
    }

    fn thread_actions(&self, state: &State, out: &mut Vec<Action>) {
        for (nr, thread) in state.threads[..usize::from(self.threads)].iter().enumerate() {
            if thread::can_step(self, state, nr) {
                out.push(Action::Thread(nr));
            }
            if thread.on.is_some()
                && matches!(thread.add.at, At::Stealing(theft) if self.order.can_be_refused(&theft))
            {
                out.push(Action::Refuse(nr));
            }
            if let Some(cpu) = thread::chooses_for(state, nr) {
                self.choices(state, nr, cpu, out);
            }
            if thread.on.is_some() {
                out.push(Action::Preempt(nr));
            } else if thread.add.at != At::Gone {
                let idle = (0..self.cpus)
                    .filter(|&cpu| state.threads.iter().all(|other| other.on != Some(cpu)));
                out.extend(idle.map(|cpu| Action::Run(nr, cpu)));
            }
            if self.can_be_interrupted(thread, nr) {
                out.push(Action::Signal(nr));
            }
            if self.exits && thread.on.is_some() && is_idle(thread) {
                out.push(Action::Exit(nr));
            }
        }
    }

    /// Appends the choices of the slow path, which steals only if no ID is free.
    fn choices(&self, state: &State, nr: usize, cpu: CpuNr, out: &mut Vec<Action>) {
        let free = (0..self.ids).filter(|id| state.free & 1 << id != 0);
        out.extend(free.map(|id| Action::TakeFree(nr, cpu, id)));
        if state.free == 0 {
            out.extend(self.holders(state).map(|victim| Action::Steal(nr, cpu, victim)));
        }
    }

    fn holders(&self, state: &State) -> impl Iterator<Item = CpuNr> {
        let table = state.table;
        (0..self.cpus).filter(move |&cpu| table[usize::from(cpu)].is_some())
    }

    fn can_be_interrupted(&self, thread: &Thread, nr: usize) -> bool {
        nr < usize::from(self.handlers)
            && thread.on.is_some()
            && thread.interrupted.is_none()
            && !(self.blocks_signals && thread.add.at.in_slow_path())
    }

    fn agent_actions(&self, state: &State, out: &mut Vec<Action>) {
        for (nr, agent) in state.agents[..usize::from(self.agents)].iter().enumerate() {
            match agent {
                Agent::Idle if state.locked => {}
                Agent::Idle => out.push(Action::AgentLock(nr)),
                Agent::Choose if self.holders(state).next().is_some() => {
                    self.agent_choices(state, nr, out)
                }
                Agent::Evicting(cpus) => self.eviction_actions(state, nr, cpus, out),
                Agent::Choose | Agent::Stealing(_) | Agent::Unlock => {
                    out.push(Action::Agent(nr));
                    if matches!(agent, Agent::Stealing(theft) if self.order.can_be_refused(theft)) {
                        out.push(Action::AgentRefuse(nr));
                    }
                }
            }
        }
    }

    /// Appends the choices of an agent. The victim itself may get the ID back.
    fn agent_choices(&self, state: &State, nr: usize, out: &mut Vec<Action>) {
        for victim in self.holders(state) {
            out.push(Action::AgentSteal(nr, victim, None));
            let takers = (0..self.cpus)
                .filter(|&cpu| cpu == victim || state.table[usize::from(cpu)].is_none());
            out.extend(takers.map(|to| Action::AgentSteal(nr, victim, Some(to))));
            if self.evicts() {
                out.push(Action::AgentUnset(nr, victim));
            }
        }
    }

    /// Returns `true` if agents evict: the other orders make no difference to an eviction, or none
    /// that needs another control.
    fn evicts(&self) -> bool {
        matches!(self.order, Order::Sound | Order::NoFence)
    }

    /// Appends the steps of an eviction: any number of entries is unset; each of their CPUs is
    /// fenced after that; then the IDs are freed.
    fn eviction_actions(
        &self,
        state: &State,
        nr: usize,
        cpus: &[Eviction; CPUS],
        out: &mut Vec<Action>,
    ) {
        let unset =
            (0..self.cpus).filter(|&cpu| matches!(cpus[usize::from(cpu)], Eviction::Unset(_)));
        out.extend(unset.map(|cpu| Action::AgentFence(nr, cpu)));
        let outstanding = cpus.iter().any(|cpu| matches!(cpu, Eviction::Unset(_)));
        out.push(if outstanding { Action::AgentRefuse(nr) } else { Action::Agent(nr) });
        out.extend(self.holders(state).map(|cpu| Action::AgentUnset(nr, cpu)));
    }

    fn unset(&self, state: &mut State, nr: usize, cpu: CpuNr) {
        let id = state.entry(cpu).take().expect("only entries with an ID are unset");
        let mut cpus = match state.agents[nr] {
            Agent::Evicting(cpus) => cpus,
            _ => [Eviction::Untouched; CPUS],
        };
        let needs_fence = self.order != Order::NoFence;
        cpus[usize::from(cpu)] =
            if needs_fence { Eviction::Unset(id) } else { Eviction::Fenced(id) };
        state.agents[nr] = Agent::Evicting(cpus);
    }

    fn step_agent(&self, state: &mut State, nr: usize) {
        state.agents[nr] = match state.agents[nr] {
            Agent::Stealing(mut theft) => {
                if self.order.advance(state, &mut theft) {
                    Agent::Stealing(theft)
                } else {
                    Agent::Unlock
                }
            }
            Agent::Evicting(cpus) => {
                cpus.iter().filter_map(|cpu| cpu.id()).for_each(|id| state.free |= 1 << id);
                Agent::Unlock
            }
            Agent::Choose | Agent::Unlock => {
                state.locked = false;
                Agent::Idle
            }
            Agent::Idle => unreachable!("nothing in flight"),
        };
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

/// Undoes an eviction whose fence is refused, if only by one CPU: each CPU gets its ID back.
fn give_back(state: &mut State, cpus: &[Eviction; CPUS]) {
    for (cpu, eviction) in (0..).zip(cpus) {
        if let Some(id) = eviction.id() {
            state.install(cpu, id);
        }
    }
}

/// Returns `true` if no add is in flight on a thread.
fn is_idle(thread: &Thread) -> bool {
    thread.interrupted.is_none() && matches!(thread.add.at, At::Start | At::Gone)
}

impl Model for Table {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let mut threads =
            [Thread { on: None, add: Add { at: At::Gone, landed: false }, interrupted: None };
                THREADS];
        threads[..usize::from(self.threads)].iter_mut().for_each(|thread| thread.add = Add::NEW);
        vec![State {
            table: [None; CPUS],
            free: (1 << self.ids) - 1,
            locked: false,
            threads,
            agents: [Agent::Idle; AGENTS],
            fault: None,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        self.thread_actions(state, out);
        self.agent_actions(state, out);
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Run(nr, cpu) => next.threads[nr].on = Some(cpu),
            Action::Preempt(nr) => {
                next.threads[nr].abort();
                next.threads[nr].on = None;
            }
            Action::Signal(nr) => thread::interrupt(&mut next, nr),
            Action::Exit(nr) => (next.threads[nr].on, next.threads[nr].add.at) = (None, At::Gone),
            Action::Thread(nr) => thread::step(self, &mut next, nr),
            Action::TakeFree(nr, cpu, id) => thread::take_free(&mut next, nr, cpu, id),
            Action::Steal(nr, cpu, victim) => thread::steal(self, &mut next, nr, cpu, victim),
            Action::AgentLock(nr) => (next.locked, next.agents[nr]) = (true, Agent::Choose),
            Action::AgentSteal(nr, victim, to) => {
                let id = state.table[usize::from(victim)].expect("victims have an ID");
                next.agents[nr] = Agent::Stealing(self.order.begin(victim, id, to));
            }
            Action::Refuse(nr) => thread::refuse(self, &mut next, nr),
            Action::Agent(nr) => self.step_agent(&mut next, nr),
            Action::AgentRefuse(nr) => {
                match state.agents[nr] {
                    Agent::Stealing(theft) => self.order.refuse(&mut next, &theft),
                    Agent::Evicting(cpus) => give_back(&mut next, &cpus),
                    Agent::Idle | Agent::Choose | Agent::Unlock => {
                        unreachable!("nothing to refuse")
                    }
                }
                next.agents[nr] = Agent::Unlock;
            }
            Action::AgentUnset(nr, cpu) => self.unset(&mut next, nr, cpu),
            Action::AgentFence(nr, cpu) => {
                next.fence(cpu);
                if let Agent::Evicting(cpus) = &mut next.agents[nr] {
                    let eviction = &mut cpus[usize::from(cpu)];
                    *eviction = eviction.id().map_or(Eviction::Untouched, Eviction::Fenced);
                }
            }
        }
        next
    }

    fn canonical(&self, state: &State) -> State {
        if self.symmetric { renaming::representative(self, state) } else { *state }
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        properties::broken(self, state)
    }

    fn begins(&self, before: &State, action: Action) -> bool {
        match action {
            Action::Signal(_) | Action::Exit(_) | Action::AgentLock(_) => true,
            Action::Thread(nr) => is_idle(&before.threads[nr]),
            _ => false,
        }
    }

    fn at_rest(&self, state: &State) -> bool {
        state.threads.iter().all(is_idle) && state.agents == [Agent::Idle; AGENTS]
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        narrate::narrate(self, before, action)
    }

    fn picture(&self, state: &State) -> String {
        narrate::picture(self, state)
    }
}
