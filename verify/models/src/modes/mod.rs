//! The kernel's ownership modes, generation e (Linux 6.19 and later).
//!
//! An ID belongs either to a thread, which takes it along, or to a CPU, whose threads use it. A
//! mode selects that for each process. A fork that makes more threads than IDs are intended for
//! gives the IDs to the CPUs; an exit that leaves few enough threads gives them back. While the
//! owners are being changed the mode has its transition bit, IDs are lent to running threads, and a
//! thread that is switched out loses its ID: so no thread keeps an ID that is not checked again.
//!
//! # Assumptions
//!
//! The protocol as modelled is a reading of a description of it, not of the source.
//!
//! 1. One process. Every thread may run on every modelled CPU; they are the allowed ones. The
//!    number of IDs is that of the possible CPUs, which may be more.
//! 2. Memory is sequentially consistent.
//! 3. A switch holds its CPU's run-queue lock from its first step to its last, and interrupts are
//!    off. A fork or an exit holds a mutex from its first step to its last. The running thread
//!    performs it. That thread may be preempted between one owner and the next, but not while it
//!    counts users, stores the mode, or waits for a run-queue lock.
//! 4. Taking a lock is one step with the first access under it, releasing it one with the last.
//!    Data that only holders of a lock read (a CPU's ID, a thread's) changes together with the next
//!    access to shared data: the mode, the bitmap. So a fix-up is one step.
//! 5. The first free bit is found and set in one step, below `max_cids` if one is free there,
//!    otherwise below the number of IDs; a thread that finds none spins, with the locks that it
//!    holds.
//! 6. Mode and `max_cids` are loaded together; `max_cids` is a bound, no claim to an ID.
//! 7. With `opt = min(CPUs, users)`, `max_cids` is `min(opt + opt/4, IDs)`. The CPUs become owners
//!    if there are more users than `max_cids`; the threads do if there are fewer than a threshold
//!    that is computed at that moment: `max(min(opt - opt/4, IDs/2), 1)`. Another threshold can be
//!    set, so that both changes occur with few CPUs and IDs.
//! 8. Owners are fixed up in any order. The thread that forks or exits is one of them; that its own
//!    ID is handled at once when the mode is stored is one of these orders.
//! 9. The last thread does not exit.
//!
//! Not modelled: growth of the set of allowed CPUs (a worker then changes the mode, by the same
//! steps), exec, CPU hotplug, weaker memory.

pub mod change;
pub mod cpu;
mod narrate;
mod properties;
mod protocol;
mod renaming;
pub mod state;

use crate::explore::Model;
use crate::kernel::state::{CpuNr, ThreadNr};
use state::{CPUS, ChangeStep, Cid, Cpu, CpuStep, Mode, Place, State, THREADS, Thread};

pub use properties::{BORROWED, LEFT_BEHIND};
pub use protocol::{Action, Flaw, Modes};

impl Modes {
    /// Returns a configuration with two CPUs of four, three threads, the published rule: both
    /// changes of mode happen.
    #[must_use]
    pub const fn new() -> Self {
        Self { cpus: 2, threads: 3, ids: 4, threshold: None, flaw: None, symmetric: true }
    }

    /// Returns a configuration with as many IDs as CPUs, in which the threads are the owners
    /// whenever there are IDs for all of them.
    #[must_use]
    pub const fn scarce(cpus: u8) -> Self {
        Self { cpus, ids: cpus, threshold: Some(cpus + 1), ..Self::new() }
    }

    /// Returns `max_cids`, and the threshold for the change back.
    fn bounds(&self, users: u8) -> (u8, u8) {
        let best = self.cpus.min(users);
        let published = (best - best / 4).min(self.ids / 2).max(1);
        ((best + best / 4).min(self.ids), self.threshold.unwrap_or(published))
    }

    /// Returns `true` if the run-queue lock of `cpu` is free and its thread preemptible.
    fn can_switch(&self, state: &State, cpu: CpuNr) -> bool {
        let stays = state
            .change
            .is_some_and(|c| change::interrupts_off(&c) && state.cpu(cpu).current == Some(c.by));
        state.cpu(cpu).step == CpuStep::Rest && !stays
    }

    fn switches(&self, state: &State, out: &mut Vec<Action>) {
        for cpu in (0..self.cpus).filter(|&cpu| self.can_switch(state, cpu)) {
            out.extend(state.cpu(cpu).current.map(|_| Action::Switch(cpu, None)));
            let waiting = (0..self.threads).filter(|&t| state.thread(t).place == Place::Waiting);
            out.extend(waiting.map(|thread| Action::Switch(cpu, Some(thread))));
        }
    }

    fn changes(&self, state: &State, out: &mut Vec<Action>) {
        let Some(change) = state.change else {
            self.forks_and_exits(state, out);
            return;
        };
        if change::can_step(self, state, &change) {
            out.push(Action::Change);
        }
        if change.step == ChangeStep::Next && state.is_at_work(change.by) {
            let owners = (0..self.cpus.max(self.threads)).filter(|nr| change.todo & 1 << nr != 0);
            out.extend(owners.map(Action::Pick));
        }
    }

    fn forks_and_exits(&self, state: &State, out: &mut Vec<Action>) {
        let able = |&t: &ThreadNr| state.thread(t).active && state.is_at_work(t);
        let unborn = (0..self.threads)
            .find(|&t| state.thread(t).place == Place::Nowhere && !state.thread(t).active);
        for by in (0..self.threads).filter(able) {
            out.extend(unborn.map(|child| Action::Fork(by, child)));
            out.extend((state.users > 1).then_some(Action::Exit(by)));
        }
    }
}

impl Default for Modes {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for Modes {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let cpu = Cpu { current: None, owned: None, step: CpuStep::Rest };
        let nobody = Thread { place: Place::Nowhere, cid: Cid::Unset, active: false };
        let mut threads = [nobody; THREADS];
        threads[0] = Thread { place: Place::Waiting, cid: Cid::Own(0), active: true };
        vec![State {
            cpus: [cpu; CPUS],
            threads,
            change: None,
            mode: Mode { per_cpu: false, transit: false },
            bitmap: 1,
            users: 1,
            max_cids: self.bounds(1).0,
            threshold: 0,
            fault: None,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        let stepping = (0..self.cpus).filter(|&cpu| cpu::can_step(self, state, cpu));
        out.extend(stepping.map(Action::Cpu));
        self.changes(state, out);
        self.switches(state, out);
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Switch(cpu, thread) => cpu::switch(&mut next, cpu, thread),
            Action::Cpu(cpu) => cpu::step(self, &mut next, cpu),
            Action::Fork(by, child) => change::fork(self, &mut next, by, child),
            Action::Exit(by) => change::exit(self, &mut next, by),
            Action::Pick(owner) => change::pick(&mut next, owner),
            Action::Change => change::step(self, &mut next),
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
            Action::Cpu(_) | Action::Pick(_) | Action::Change => false,
            // A fork or an exit waits for its thread if that was preempted.
            Action::Switch(_, Some(thread)) => before.change.is_none_or(|c| c.by != thread),
            Action::Switch(_, None) | Action::Fork(..) | Action::Exit(_) => true,
        }
    }

    fn at_rest(&self, state: &State) -> bool {
        state.change.is_none() && state.cpus.iter().all(|cpu| cpu.step == CpuStep::Rest)
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        narrate::narrate(self, before, action)
    }

    fn picture(&self, state: &State) -> String {
        narrate::picture(self, state)
    }
}
