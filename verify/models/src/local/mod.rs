//! The lock of percid's `Local`: one value per ID, used by one thread at a time, without locked
//! instructions.
//!
//! Every ID has a shard: a lock, a word that says whether the shard is closed, and a value. A
//! thread that runs with the ID takes the lock in a critical section: is the shard open, and the
//! lock as expected? Then it stores its token, which is the commit. It uses the value, or makes one
//! if there was none, and gives the lock back by a plain store, from whatever CPU it is on by then.
//! Who finds the shard closed or its lock held goes elsewhere.
//!
//! A visitor closes the shard, has the kernel abort the sections in flight (membarrier), and takes
//! the lock by an exchange as soon as the present holder has given it back. He uses the value, or
//! takes it out, gives the lock back and opens the shard. Visitors take turns.
//!
//! [`Taking::Exchange`]: shards on which no sections work. A thread looks whether the shard is closed,
//! exchanges the lock for its token, and after a full barrier looks again: if the shard has been
//! closed in between, it puts back what it found.
//!
//! Threads use values forever; visitors visit and drain forever; a thief moves IDs between CPUs
//! forever. Executions are not bounded.
//!
//! # Progress
//!
//! No thread waits but visitors ([`SOLO`]); and a visitor waits for the present holder only,
//! however many others come. After its fence no thread gets the shard any more ([`OVERTAKEN`]).
//! Without sections a thread may still take the lock for a moment, to put it back, but only once
//! while the visitor waits ([`STARVED`]).
//!
//! # Assumptions
//!
//! 1. The load of the CPU's ID and of what leads to it is one step, the first of a section. A
//!    section that is preempted, moved or fenced begins again, unless it has committed. Signals do
//!    nothing more: their handlers are other threads.
//! 2. A thread can be preempted and moved at every step outside sections. Another thread then runs
//!    on the CPU with the same ID.
//! 3. The thief moves any ID at any time: it unsets the entry of a CPU, fences that CPU, and gives
//!    the ID to any CPU without one. Without sections all CPUs have the same shard, as extra shards
//!    are for all threads.
//! 4. Memory, if it is not sequential, is a store buffer for each CPU that holds what threads store
//!    to locks. A context switch and a fence empty it, and on x86-64 an atomic read-modify-write
//!    does; elsewhere that follows its CPU's own stores to the same lock only. Not left open are
//!    these: the loads of a section are performed in program order (the first is an acquire load);
//!    a value is written before READY is, and read after it was found; so is its bit set.
//! 5. What visitors store is visible at once: the stores are release stores, and a visitor whose
//!    stores are late is a visitor that is slow. Closing is followed by a full barrier.
//! 6. Membarrier reaches the CPUs one by one, in any order; it empties the store buffer, and aborts
//!    the section in flight.
//! 7. The use of a value is one step, and so is taking it out. A value that is there or not is seen
//!    by all threads at once: no step depends on it.
//! 8. Copies are visited one after the other. Visitors that close several, call membarrier once,
//!    and visit them all, are to each shard visitors that take their time.
//! 9. A visit must have the values whose bits are set when it begins.

mod narrate;
mod properties;
mod protocol;
mod renaming;
pub mod state;
mod thread;
mod visitor;

use crate::explore::Model;
use crate::memory::{Buffer, Memory};
use state::{
    At, CPUS, Hold, IDS, Id, Lock, Shard, State, Step, THREADS, Thief, Thread, VISITORS, Visit,
    Visitor, Work,
};

pub use properties::{LOST, OVERTAKEN, OWED, REVIVED, SHARED, SOLO, STARVED, UNMARKED};
pub use protocol::{Action, Flaw, Local, Taking};

impl Local {
    /// With sections, on one CPU with one ID: two threads, two visitors.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            taking: Taking::Section,
            cpus: 1,
            threads: 2,
            ids: 1,
            visitors: 2,
            theft: false,
            memory: Memory::Sequential,
            flaw: None,
            values_only: false,
            symmetric: true,
        }
    }

    /// The same on two CPUs, between which the ID moves.
    #[must_use]
    pub const fn with_theft() -> Self {
        Self { cpus: 2, theft: true, ..Self::new() }
    }

    /// Without sections, on two CPUs that share a shard.
    #[must_use]
    pub const fn with_exchange() -> Self {
        Self { taking: Taking::Exchange, cpus: 2, ..Self::new() }
    }

    /// Whether a visitor takes the lock by an exchange.
    fn exchanges(&self) -> bool {
        !matches!(self.flaw, Some(Flaw::NoExchange | Flaw::OpenFirstNoExchange))
    }

    fn thread_actions(&self, state: &State, nr: usize, out: &mut Vec<Action>) {
        let thread = state.threads[nr];
        if thread.on.is_none() {
            let idle = (0..self.cpus)
                .filter(|&cpu| state.threads.iter().all(|other| other.on != Some(cpu)));
            return out.extend(idle.map(|cpu| Action::Run(nr, cpu)));
        }
        out.push(Action::Preempt(nr));
        if thread.work.is_none() {
            out.extend([Lock::None, Lock::Ready].map(|expects| Action::Begin(nr, expects)));
        }
        if thread::can_step(self, state, nr) {
            out.push(Action::Thread(nr));
        }
        if thread::can_fail(state, nr) {
            out.push(Action::Fail(nr));
        }
    }

    fn visitor_actions(&self, state: &State, nr: usize, out: &mut Vec<Action>) {
        match state.visitors[nr].at {
            Visit::Idle => out.extend([false, true].map(|drains| Action::Visit(nr, drains))),
            Visit::Choose => {
                let left = state.visitors[nr].left;
                let ids = (0..self.ids).filter(|id| left & 1 << id != 0);
                out.extend(ids.map(|id| Action::Choose(nr, id)));
            }
            Visit::Shard(Hold { step: Step::Membarrier, reached, .. }) => {
                let cpus = (0..self.cpus).filter(|cpu| reached & 1 << cpu == 0);
                out.extend(cpus.map(|cpu| Action::Reach(nr, cpu)));
            }
            _ if visitor::can_step(self, state, nr) => out.push(Action::Visitor(nr)),
            _ => {}
        }
    }

    fn thief_actions(&self, state: &State, out: &mut Vec<Action>) {
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

    fn table(&self) -> [Option<Id>; CPUS] {
        let mut table = [None; CPUS];
        for (cpu, entry) in (0..self.cpus).zip(&mut table) {
            *entry = match self.taking {
                Taking::Section => (cpu < self.ids).then_some(cpu),
                Taking::Exchange => Some(0),
            };
        }
        table
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for Local {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let shard = Shard { lock: Lock::None, closed: false, value: false };
        vec![State {
            table: self.table(),
            shards: [shard; IDS],
            buffers: [Buffer::EMPTY; CPUS],
            mask: 0,
            turn: false,
            threads: [Thread { on: None, work: None, overtook: false }; THREADS],
            visitors: [Visitor::IDLE; VISITORS],
            thief: Thief::Idle,
            fault: None,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        (0..self.threads.into()).for_each(|nr| self.thread_actions(state, nr, out));
        (0..self.visitors.into()).for_each(|nr| self.visitor_actions(state, nr, out));
        for (cpu, buffer) in (0..self.cpus).zip(&state.buffers) {
            out.extend(buffer.ready(self.memory).map(|index| Action::Flush(cpu, index)));
        }
        if self.theft {
            self.thief_actions(state, out);
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Run(nr, cpu) => next.threads[nr].on = Some(cpu),
            Action::Preempt(nr) => thread::preempt(self, &mut next, nr),
            Action::Begin(nr, expects) => {
                next.threads[nr].work = Some(Work { expects, at: At::Start });
            }
            Action::Thread(nr) => thread::step(self, &mut next, nr),
            Action::Fail(nr) => thread::fail(self, &mut next, nr),
            Action::Flush(cpu, index) => thread::flush(&mut next, cpu, index),
            Action::Visit(nr, drains) => visitor::begin(self, &mut next, nr, drains),
            Action::Visitor(nr) => visitor::step(self, &mut next, nr),
            Action::Choose(nr, id) => visitor::choose(self, &mut next, nr, id),
            Action::Reach(nr, cpu) => visitor::reach(self, &mut next, nr, cpu),
            Action::Steal(cpu, id) => {
                next.table[usize::from(cpu)] = None;
                next.thief = match self.flaw {
                    Some(Flaw::UnfencedTheft) => Thief::Install(id),
                    _ => Thief::Fence(cpu, id),
                };
            }
            Action::Thief => {
                if let Thief::Fence(cpu, id) = state.thief {
                    thread::fence(self, &mut next, cpu);
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

    fn canonical(&self, state: &State) -> State {
        if self.symmetric { renaming::representative(self, state) } else { *state }
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        properties::broken(self, state)
    }

    fn begins(&self, _: &State, action: Action) -> bool {
        matches!(action, Action::Begin(..) | Action::Visit(..) | Action::Steal(..))
    }

    fn at_rest(&self, state: &State) -> bool {
        state.threads.iter().all(|thread| thread.work.is_none())
            && state.visitors.iter().all(|visitor| visitor.at == Visit::Idle)
            && state.thief == Thief::Idle
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        narrate::narrate(self, before, action)
    }

    fn picture(&self, state: &State) -> String {
        narrate::picture(self, state)
    }
}
