//! Seizing a block: how a drainer takes a block away from the CPU that uses it without locked
//! instructions.
//!
//! Every ID has a block of memory with a state word. Threads that run with the ID change the block
//! in critical sections: read the word, read or write a slot, commit with one store to the word. A
//! drainer, anywhere, marks the word as seized by a compare-exchange, has the kernel abort the
//! sections in flight (membarrier), and confirms that none of them has committed over its mark.
//! Then the block is the drainer's alone: sections that begin from then on see the mark and leave.
//! A mask says which blocks a drainer must look at; a block that was never used, or was drained,
//! is inactive and gets its bit when it is activated.
//!
//! A block is a stack: the word says how many items there are. Threads push and pop forever;
//! drainers drain forever; a thief moves IDs between CPUs forever. Executions are not bounded.
//!
//! # What stands for the data
//!
//! Items are a few, distinct, and circulate: outside, in the hands of a thread that pushes, inside,
//! and outside again, by a pop or a drain. Each must be in exactly one of these places at any time.
//! A push that finds its block full or unsuitable ends with the item outside: the shared list, or
//! the caller, is another matter. Dead slots keep their items, so that a stale count would show.
//!
//! # Assumptions
//!
//! 1. The load of the CPU's ID and of what leads to it is one step, the first of a section. A
//!    section that is preempted, moved or fenced begins again, unless it has committed. Signals do
//!    nothing more: their handlers are other threads.
//! 2. A thread can be preempted and moved at every step outside sections: during an activation.
//!    Another thread then runs on the CPU with the same ID.
//! 3. The thief moves any ID at any time: it unsets the entry of a CPU, fences that CPU, and gives
//!    the ID to any CPU without one. That covers percid's table, whose protocol is explored by
//!    itself, and the kernel, which moves an ID when no section of its owner is in flight.
//! 4. Memory, if it is not sequential, is a store buffer for each CPU that holds the stores of
//!    sections and of activations. A context switch and a fence empty it.
//!    [`Memory::Unordered`] lets stores to different places overtake each other, and the atomic set
//!    of a bit does not empty the buffer: the stores need no order among themselves. Not left open
//!    is this: a bit is set and cleared before the word is stored that says so (a release store).
//! 5. A drainer's own stores and the lock are visible at once. Both are release stores: a drainer
//!    whose stores are late is a drainer that is slow.
//! 6. Membarrier reaches the CPUs one by one, in any order; it empties the store buffer, and aborts
//!    the section in flight.
//! 7. What a drain does with an owned block is one step: no other thread may touch the block then,
//!    and that is checked.
//! 8. Blocks are seized one after the other. A drainer that marks several words, calls membarrier
//!    once, and confirms them all, is to each block one that takes its time: no step concerns two
//!    blocks, and an operation never waits.
//! 9. A drain must get what is inside a block when it begins if the activation of the block is
//!    visible by then. An item in a block whose activation still waits in a store buffer may be
//!    missed: no thread can have learned of it but by a later store from the same buffer.

mod drainer;
mod narrate;
mod ownership;
mod properties;
mod protocol;
mod renaming;
pub mod state;
mod thread;

use crate::explore::Model;
use crate::memory::{Buffer, Memory};
use state::{
    At, Block, CAPACITY, CPUS, DRAINERS, Drain, Drainer, IDS, Op, State, THREADS, Thief, Thread,
    Value, Word, Work,
};

pub use properties::{INTRUDED, LOST, OWED, SHARED, SOLO, TWICE, UNMARKED};
pub use protocol::{Action, Flaw, Seizure};

impl Seizure {
    /// The protocol on one CPU with one ID: two threads, two drainers, two items.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cpus: 1,
            threads: 2,
            ids: 1,
            items: 2,
            drainers: 2,
            theft: false,
            memory: Memory::Sequential,
            flaw: None,
            items_only: false,
            symmetric: true,
        }
    }

    /// The same on two CPUs, between which the ID moves; one drainer.
    #[must_use]
    pub const fn with_theft() -> Self {
        Self { cpus: 2, drainers: 1, theft: true, ..Self::new() }
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
            self.operations(state, nr, out);
        } else if thread::can_step(self, state, nr) {
            out.push(Action::Thread(nr));
        }
    }

    fn operations(&self, state: &State, nr: usize, out: &mut Vec<Action>) {
        let outside = (0..self.items).filter(|item| state.outside & 1 << item != 0);
        out.extend(outside.map(|item| Action::Begin(nr, Op::Push(item))));
        out.push(Action::Begin(nr, Op::Pop));
    }

    fn drainer_actions(&self, state: &State, nr: usize, out: &mut Vec<Action>) {
        match state.drainers[nr].at {
            Drain::Idle => out.push(Action::Drain(nr)),
            Drain::Choose => {
                let left = state.drainers[nr].left;
                let ids = (0..self.ids).filter(|id| left & 1 << id != 0);
                out.extend(ids.map(|id| Action::Choose(nr, id)));
            }
            Drain::Seize(hold) if hold.step == state::SeizeStep::Membarrier => {
                let cpus = (0..self.cpus).filter(|cpu| hold.reached & 1 << cpu == 0);
                out.extend(cpus.map(|cpu| Action::Reach(nr, cpu)));
            }
            _ if drainer::can_step(state, nr) => out.push(Action::Drainer(nr)),
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
}

impl Default for Seizure {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for Seizure {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let block = Block { word: Word::of(Value::Inactive), slots: [None; CAPACITY] };
        let mut table = [None; CPUS];
        for (id, entry) in (0..self.ids.min(self.cpus)).zip(&mut table) {
            *entry = Some(id);
        }
        vec![State {
            table,
            blocks: [block; IDS],
            buffers: [Buffer::EMPTY; CPUS],
            mask: 0,
            locked: false,
            outside: (1 << self.items) - 1,
            threads: [Thread { on: None, work: None }; THREADS],
            drainers: [Drainer::IDLE; DRAINERS],
            thief: Thief::Idle,
            fault: None,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        (0..self.threads.into()).for_each(|nr| self.thread_actions(state, nr, out));
        (0..self.drainers.into()).for_each(|nr| self.drainer_actions(state, nr, out));
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
            Action::Begin(nr, op) => {
                if let Op::Push(item) = op {
                    next.outside &= !(1 << item);
                }
                next.threads[nr].work = Some(Work { op, at: At::Start });
            }
            Action::Thread(nr) => thread::step(self, &mut next, nr),
            Action::Flush(cpu, index) => thread::flush(self, &mut next, cpu, index),
            Action::Drain(nr) => drainer::begin(self, &mut next, nr),
            Action::Drainer(nr) => drainer::step(self, &mut next, nr),
            Action::Choose(nr, id) => drainer::choose(&mut next, nr, id),
            Action::Reach(nr, cpu) => drainer::reach(self, &mut next, nr, cpu),
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
        matches!(action, Action::Begin(..) | Action::Drain(..) | Action::Steal(..))
    }

    fn at_rest(&self, state: &State) -> bool {
        state.threads.iter().all(|thread| thread.work.is_none())
            && state.drainers.iter().all(|drainer| drainer.at == Drain::Idle)
            && state.thief == Thief::Idle
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        narrate::narrate(self, before, action)
    }

    fn picture(&self, state: &State) -> String {
        narrate::picture(self, state)
    }
}
