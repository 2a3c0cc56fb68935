//! The common part of percid's structures: threads on CPUs that have IDs, memory for each ID, and
//! visitors that go through the memory of all IDs.
//!
//! Threads change the memory of the ID they run with, in critical sections and elsewhere. A
//! visitor, on any CPU, goes through the IDs of a mask, makes the kernel abort the sections in
//! flight (membarrier) and takes what it finds. Only one visitor works at a time. A thief moves IDs
//! between CPUs. All do so forever: executions are not bounded. A [`Protocol`] defines the work of
//! threads and visitors.
//!
//! # Assumptions
//!
//! 1. The load of the CPU's ID and of what leads to it is one step, the first of a section. A
//!    section that is preempted, moved or fenced begins again, unless it has committed. Signals do
//!    nothing more: their handlers are other threads.
//! 2. A thread can be preempted and moved at every step outside sections. Another thread then runs
//!    on the CPU with the same ID.
//! 3. The thief moves any ID at any time: it unsets the entry of a CPU, fences that CPU, and gives
//!    the ID to any CPU without one. That covers percid's table, whose protocol is explored by
//!    itself, and the kernel, which moves an ID when no section of its owner is in flight.
//! 4. Memory, if it is not sequential, is a store buffer for each CPU. A context switch and a fence
//!    empty it. The stores of visitors are visible at once: they are release stores, and a visitor
//!    whose stores are late is equivalent to a slow visitor.
//! 5. Membarrier reaches the CPUs one by one, in any order; it empties the store buffer, and aborts
//!    the section in flight.
//! 6. The memory of IDs is visited one after the other. Visitors that begin with several, call
//!    membarrier once, and visit them all, are to each ID visitors that take their time: no step
//!    concerns two IDs.

mod narrate;
mod protocol;
mod renaming;
pub mod state;
mod thread;
mod visitor;

use crate::explore::Model;
use crate::memory::{Buffer, Memory};
use state::{CPUS, CpuNr, Id, State, THREADS, Thief, Thread, VISITORS, Visit, Visitor, Work};

pub use protocol::{Piece, Protocol};
pub(crate) use renaming::Renaming;

/// A thread waits for another one.
pub const SOLO: &str = "P3 progress: a running thread cannot finish its operation by itself";

/// One configuration of a model.
#[derive(Debug, Clone, Copy)]
pub struct Structure<P: Protocol> {
    /// The steps of threads and visitors.
    pub protocol: P,
    /// Number of CPUs.
    pub cpus: u8,
    /// Number of threads.
    pub threads: u8,
    /// Number of IDs.
    pub ids: u8,
    /// Number of visitors.
    pub visitors: u8,
    /// `true` if IDs move between CPUs.
    pub theft: bool,
    /// The order in which stores of a CPU reach the others.
    pub memory: Memory,
    /// The place at which the protocol is left.
    pub flaw: Option<P::Flaw>,
    /// `true` if only the fate of the data ends the search, which shows the effect of other
    /// violations.
    pub data_only: bool,
    /// `true` if states that differ by names only count as one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<P: Protocol> {
    /// A thread gets a CPU.
    Run(usize, CpuNr),
    /// A thread loses its CPU.
    Preempt(usize),
    /// A thread begins an operation.
    Begin(usize, P::Op),
    /// A thread takes its next step.
    Thread(usize),
    /// The next step of a thread fails.
    Fail(usize),
    /// One of the waiting stores of a CPU becomes visible.
    Flush(CpuNr, usize),
    /// A visitor begins to visit, or to drain.
    Visit(usize, bool),
    /// A visitor takes its next step.
    Visitor(usize),
    /// A visitor chooses an ID from those that are left.
    Choose(usize, Id),
    /// A visitor's membarrier reaches a CPU.
    Reach(usize, CpuNr),
    /// The thief unsets a CPU's entry.
    Steal(CpuNr, Id),
    /// The thief fences the CPU.
    Thief,
    /// The thief gives the ID to a CPU.
    Install(CpuNr, Id),
}

impl<P: Protocol> Structure<P> {
    /// Returns a configuration on one CPU with one ID: two threads, two visitors.
    pub(crate) const fn of(protocol: P) -> Self {
        Self {
            protocol,
            cpus: 1,
            threads: 2,
            ids: 1,
            visitors: 2,
            theft: false,
            memory: Memory::Sequential,
            flaw: None,
            data_only: false,
            symmetric: true,
        }
    }

    fn thread_actions(&self, state: &State<P>, nr: usize, out: &mut Vec<Action<P>>) {
        let thread = state.threads[nr];
        if thread.on.is_none() {
            let idle = (0..self.cpus)
                .filter(|&cpu| state.threads.iter().all(|other| other.on != Some(cpu)));
            return out.extend(idle.map(|cpu| Action::Run(nr, cpu)));
        }
        out.push(Action::Preempt(nr));
        if thread.work.is_none() {
            out.extend(P::operations(self, state).map(|op| Action::Begin(nr, op)));
        }
        if self.can_step(state, nr) {
            out.push(Action::Thread(nr));
        }
        if self.can_fail(state, nr) {
            out.push(Action::Fail(nr));
        }
    }

    fn visitor_actions(&self, state: &State<P>, nr: usize, out: &mut Vec<Action<P>>) {
        match state.visitors[nr].at {
            Visit::Idle => out.extend(P::DRAINS.iter().map(|&drains| Action::Visit(nr, drains))),
            Visit::Choose => {
                let left = state.visitors[nr].left;
                let ids = (0..self.ids).filter(|id| left & 1 << id != 0);
                out.extend(ids.map(|id| Action::Choose(nr, id)));
            }
            Visit::At(hold) if hold.step == P::MEMBARRIER => {
                let cpus = (0..self.cpus).filter(|cpu| hold.reached & 1 << cpu == 0);
                out.extend(cpus.map(|cpu| Action::Reach(nr, cpu)));
            }
            at if self.can_visit(state, at) => out.push(Action::Visitor(nr)),
            _ => {}
        }
    }

    fn thief_actions(&self, state: &State<P>, out: &mut Vec<Action<P>>) {
        let entries = (0..self.cpus).zip(state.table);
        match state.thief {
            Thief::Idle => {
                let set = entries.filter_map(|(cpu, id)| Some((cpu, id?)));
                out.extend(set.map(|(cpu, id)| Action::Steal(cpu, id)));
            }
            Thief::Fence(..) => out.push(Action::Thief),
            Thief::Install(id) => {
                let unset = entries.filter(|(_, id)| id.is_none());
                out.extend(unset.map(|(cpu, _)| Action::Install(cpu, id)));
            }
        }
    }
}

impl<P: Protocol> Model for Structure<P> {
    type State = State<P>;
    type Action = Action<P>;

    fn initial(&self) -> Vec<State<P>> {
        let mut table = [None; CPUS];
        for (cpu, entry) in (0..self.cpus).zip(&mut table) {
            *entry = P::first_id(self, cpu);
        }
        vec![State {
            table,
            data: P::data(self),
            buffers: [Buffer::EMPTY; CPUS],
            mask: 0,
            turn: false,
            threads: [Thread { on: None, work: None, overtook: false }; THREADS],
            visitors: [Visitor::IDLE; VISITORS],
            thief: Thief::Idle,
            fault: None,
        }]
    }

    fn actions(&self, state: &State<P>, out: &mut Vec<Action<P>>) {
        (0..self.threads.into()).for_each(|nr| self.thread_actions(state, nr, out));
        (0..self.visitors.into()).for_each(|nr| self.visitor_actions(state, nr, out));
        for (cpu, buffer) in (0..self.cpus).zip(&state.buffers) {
            out.extend(buffer.ready(self.memory).map(|index| Action::Flush(cpu, index)));
        }
        if self.theft {
            self.thief_actions(state, out);
        }
    }

    fn apply(&self, state: &State<P>, action: Action<P>) -> State<P> {
        let mut next = *state;
        match action {
            Action::Run(nr, cpu) => next.threads[nr].on = Some(cpu),
            Action::Preempt(nr) => self.preempt(&mut next, nr),
            Action::Begin(nr, op) => {
                P::begin(&mut next, op);
                next.threads[nr].work = Some(Work { op, at: P::START });
            }
            Action::Thread(nr) => self.step(&mut next, nr),
            Action::Fail(nr) => self.fail(&mut next, nr),
            Action::Flush(cpu, index) => self.flush(&mut next, cpu, index),
            Action::Visit(nr, drains) => self.begin_visit(&mut next, nr, drains),
            Action::Visitor(nr) => self.visit(&mut next, nr),
            Action::Choose(nr, id) => self.choose(&mut next, nr, id),
            Action::Reach(nr, cpu) => self.reach(&mut next, nr, cpu),
            Action::Steal(cpu, id) => {
                next.table[usize::from(cpu)] = None;
                let fenced = self.flaw != Some(P::UNFENCED_THEFT);
                next.thief = if fenced { Thief::Fence(cpu, id) } else { Thief::Install(id) };
            }
            Action::Thief => {
                if let Thief::Fence(cpu, id) = state.thief {
                    self.fence(&mut next, cpu);
                    next.thief = Thief::Install(id);
                }
            }
            Action::Install(cpu, id) => {
                next.table[usize::from(cpu)] = Some(id);
                next.thief = Thief::Idle;
            }
        }
        next
    }

    fn canonical(&self, state: &State<P>) -> State<P> {
        if self.symmetric { renaming::representative(self, state) } else { *state }
    }

    fn broken(&self, state: &State<P>) -> Option<&'static str> {
        P::broken(self, state).or_else(|| {
            let alone = |nr| self.finishes_alone(state, nr);
            (!self.data_only && !(0..self.threads.into()).all(alone)).then_some(SOLO)
        })
    }

    fn begins(&self, _: &State<P>, action: Action<P>) -> bool {
        matches!(action, Action::Begin(..) | Action::Visit(..) | Action::Steal(..))
    }

    fn at_rest(&self, state: &State<P>) -> bool {
        state.threads.iter().all(|thread| thread.work.is_none())
            && state.visitors.iter().all(|visitor| visitor.at == Visit::Idle)
            && state.thief == Thief::Idle
    }

    fn narrate(&self, before: &State<P>, action: Action<P>) -> (String, String) {
        narrate::narrate(self, before, action)
    }

    fn picture(&self, state: &State<P>) -> String {
        narrate::picture(self, state)
    }
}
