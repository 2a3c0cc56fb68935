//! The kernel's slot protocol, generations b to d (Linux 6.4 to 6.18).
//!
//! One model for three generations: [`Generation`] selects the additions of c to b (the recent ID,
//! expansion before compaction) and of d to c (compaction after shrink). [`cpu`] is the context
//! switch, [`agent`] are the two kinds of remote agents.
//!
//! # Assumptions
//!
//! 1. One process; every CPU is allowed to every thread; a CPU without a current thread runs
//!    something else or idles.
//! 2. Memory is sequentially consistent, except that with [`Memory::Buffered`] the store of the
//!    current thread waits in a store buffer until it drains by itself, or until the CPU executes
//!    the barrier, an atomic read-modify-write or the lock operation of its next switch. No other
//!    store is buffered, no load is delayed.
//! 3. A switch on a CPU, and an exit, hold that CPU's run-queue lock from their first step to their
//!    last. A migration holds the destination's run-queue lock in the same way, and not the
//!    source's. A thread that is being switched out cannot be migrated before that switch is
//!    complete. A scan holds no lock. A thread that ran carries it out on its way back to user
//!    space: with interrupts on and preemptible, except from the second compare-exchange of a
//!    remote clear to the clear bit. A preempted scan goes on when its thread runs again, wherever.
//! 4. Taking a lock is one step together with the first access under it, releasing it is one step
//!    with the last: nothing that is observable to others lies in between. The slow lock of the
//!    allocator is modelled with steps of its own.
//! 5. A scan begins at most once per 100 ms, from any running thread that has no scan in progress.
//!    It does not wait for a scan that began earlier and is late. Migrations are concurrent if
//!    their destinations differ.
//! 6. A scan visits the CPUs of each pass in any order, each once; it counts the set bits once,
//!    between its two passes. A remote clear loads the slot itself. The second pass marks every
//!    valid slot, even if a thread of the process runs there: the look at the current thread comes
//!    after the mark, and does not remove the mark.
//! 7. A migration notes at its beginning whether the destination has an ID, and acts on that at its
//!    end. The only writer that could make an unset destination valid in between waits for the lock
//!    that the migration holds.
//! 8. Time is one bit per slot, "stamped 100 ms ago or earlier", and one for the scan. No switch
//!    takes 100 ms.
//! 9. `users` is loaded in one step together with `max_nr_cid`, or with the destination's slot: it
//!    is a bound, no claim to an ID. The number of allowed CPUs is constant.
//! 10. Generation d lowers `max_nr_cid` first thing in an allocation.
//! 11. An exiting thread stops being "current" to remote agents, passes a full barrier, then
//!     compare-exchanges its CPU's slot, marked or not, to unset, and clears the bit if it won. It
//!     stops counting as a user last.
//! 12. The bitmap is one word, loaded at once.
//! 13. The version tag of the variant never repeats. It changes at every installation, and is
//!     represented exactly: by one bit per agent in flight, "nothing was installed since I loaded
//!     the slot".

pub mod agent;
pub mod course;
pub mod cpu;
mod narrate;
mod properties;
mod protocol;
mod renaming;
pub mod state;

use crate::explore::Model;
use state::{
    AGENTS, Agent, CPUS, Cpu, CpuNr, CpuStep, Place, Scanner, ScannerStep, Slot, State, THREADS,
    Thread,
};

pub use properties::{DOUBLE_FREE, LEAK, OVERWRITTEN, SHARED_ID, TWO_OWNERS};
pub use protocol::{Action, Generation, Kernel, Memory, Role, Stalls, Undelayed};

impl Kernel {
    /// Returns a configuration with three CPUs, three threads that may exit, agents that are late,
    /// sequential memory, no tags.
    #[must_use]
    pub const fn new(generation: Generation, agents: &'static [Role]) -> Self {
        Self {
            generation,
            cpus: CPUS as u8,
            threads: THREADS as u8,
            agents,
            undelayed: Undelayed::NOBODY,
            weighs: true,
            exits: true,
            tagged: false,
            locks_source: false,
            memory: Memory::Sequential,
            stalls: Stalls::Long,
            sharing_ends: true,
            symmetric: true,
        }
    }

    /// Returns `true` if CPUs remember the ID that they held last.
    fn remembers(&self) -> bool {
        self.generation != Generation::B
    }

    /// Returns `true` if time stamps are used.
    fn timed(&self) -> bool {
        self.undelayed.scans || self.agents.contains(&Role::Scanner)
    }

    /// Returns the bound of generations c and d: `min(nr_cpus_allowed, users)`.
    fn bound(&self, state: &State) -> u8 {
        self.cpus.min(state.users)
    }

    /// Returns `true` if the run-queue lock of `cpu` is free.
    fn is_unlocked(&self, state: &State, cpu: CpuNr) -> bool {
        state.cpu(cpu).step == CpuStep::Rest
            && !state.locked_by_mover(cpu)
            && !(self.locks_source && state.about_to_release(cpu))
    }

    /// Returns `true` if the run-queue lock of `cpu` is free and its thread preemptible.
    fn can_switch(&self, state: &State, cpu: CpuNr) -> bool {
        let stays = match state.scan_on(cpu) {
            None => false,
            Some(scanner) => self.stalls == Stalls::Short || scanner.interrupts_off(),
        };
        self.is_unlocked(state, cpu) && !stays
    }

    /// Returns `true` if time stamps can expire now.
    fn can_elapse(&self, state: &State) -> bool {
        let cpus = &state.cpus[..usize::from(self.cpus)];
        let changes = !state.scan_due || cpus.iter().any(|cpu| !cpu.expired);
        let settled = match self.stalls {
            Stalls::Short => self.at_rest(state),
            Stalls::Long => cpus.iter().all(|cpu| cpu.step == CpuStep::Rest),
        };
        self.timed() && changes && settled
    }

    /// Returns the place of an agent that ends before any other actor takes a step.
    fn spare(&self) -> u8 {
        self.agents.len() as u8
    }

    fn begin_actions(&self, state: &State, out: &mut Vec<Action>) {
        self.switches(state, out);
        if self.can_elapse(state) {
            out.push(Action::Elapse);
        }
        for (agent, role) in (0..).zip(self.agents) {
            if state.agents[usize::from(agent)] == Agent::Idle {
                match role {
                    Role::Mover => self.begin_move(state, agent, out),
                    Role::Scanner => self.begin_scan(state, agent, out),
                }
            }
        }
        if self.undelayed.moves {
            self.begin_move(state, self.spare(), out);
        }
        if self.undelayed.scans {
            self.begin_scan(state, self.spare(), out);
        }
    }

    fn switches(&self, state: &State, out: &mut Vec<Action>) {
        for cpu in (0..self.cpus).filter(|&cpu| self.can_switch(state, cpu)) {
            let current = state.cpu(cpu).current;
            let exits = current.filter(|&thread| self.exits && !state.scans(thread));
            let waiting =
                (0..self.threads).filter(|&t| state.thread(t).place == Place::Waiting(cpu));
            let away = current.map(|_| Action::Switch(cpu, None));
            let all = away
                .into_iter()
                .chain(exits.map(|_| Action::Exit(cpu)))
                .chain(waiting.map(|t| Action::Switch(cpu, Some(t))));
            out.extend(all.filter(|&switch| self.can_end(state, switch)));
        }
    }

    /// Returns `true` if whole work that begins with `action` would end without waiting for a
    /// thread.
    fn can_end(&self, state: &State, action: Action) -> bool {
        !self.undelayed.switches || course::run(self, state, action, |_, _| {}).is_some()
    }

    fn begin_move(&self, state: &State, agent: u8, out: &mut Vec<Action>) {
        for thread in 0..self.threads {
            let Place::Waiting(from) = state.thread(thread).place else { continue };
            let targets = (0..self.cpus).filter(|&to| to != from && self.can_switch(state, to));
            out.extend(targets.map(|to| Action::Move(agent, thread, to)));
        }
    }

    fn begin_scan(&self, state: &State, agent: u8, out: &mut Vec<Action>) {
        if state.scan_due {
            let running = (0..self.cpus)
                .filter(|&cpu| self.is_unlocked(state, cpu))
                .filter_map(|cpu| state.holder(cpu));
            let idle = running.map(|(thread, _)| thread).filter(|&thread| !state.scans(thread));
            out.extend(idle.map(|thread| Action::Scan(agent, thread)));
        }
    }

    fn carry_on_actions(&self, state: &State, out: &mut Vec<Action>) {
        for cpu in 0..self.cpus {
            if cpu::can_step(self, state, cpu) {
                out.push(Action::Cpu(cpu));
            }
            if state.cpu(cpu).seen_running != state.cpu(cpu).current.is_some() {
                out.push(Action::Drain(cpu));
            }
        }
        for (nr, agent) in (0..).zip(&state.agents) {
            match agent {
                Agent::Idle => {}
                Agent::Scanner(scanner) if !state.is_at_work(scanner.by) => {}
                Agent::Scanner(Scanner { step: ScannerStep::Visit, todo, .. }) => {
                    out.extend(
                        (0..self.cpus)
                            .filter(|cpu| todo & 1 << cpu != 0)
                            .map(|cpu| Action::Visit(nr, cpu)),
                    );
                }
                _ => out.push(Action::Agent(nr)),
            }
        }
    }

    /// Applies one atomic step to the state.
    fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Switch(cpu, thread) => cpu::switch(self, state, cpu, thread),
            Action::Exit(cpu) => cpu::exit(self, state, cpu),
            Action::Cpu(cpu) => cpu::step(self, state, cpu),
            Action::Drain(cpu) => cpu::drain(state, cpu),
            Action::Move(agent, thread, to) => agent::begin_move(self, state, agent, thread, to),
            Action::Scan(agent, by) => agent::begin_scan(self, state, agent, by),
            Action::Visit(agent, cpu) => agent::visit(self, state, agent, cpu),
            Action::Agent(agent) => agent::step(self, state, agent),
            Action::Elapse => {
                state.scan_due = true;
                state.cpus[..usize::from(self.cpus)].iter_mut().for_each(|cpu| cpu.expired = true);
            }
        }
    }

    fn with_places(&self, mut state: State, places: u32) -> State {
        let cpus = u32::from(self.cpus);
        for thread in 0..self.threads {
            let cpu = places / cpus.pow(thread.into()) % cpus;
            state.thread_mut(thread).place = Place::Waiting(cpu as CpuNr);
        }
        state
    }
}

impl Model for Kernel {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let cpu = Cpu {
            current: None,
            seen_running: false,
            slot: Slot::Unset,
            recent: None,
            expired: false,
            step: CpuStep::Rest,
        };
        let state = State {
            cpus: [cpu; CPUS],
            threads: [Thread { place: Place::Dead, last: None }; THREADS],
            agents: [Agent::Idle; AGENTS],
            bitmap: 0,
            max_nr_cid: 0,
            users: self.threads,
            slow_lock: None,
            scan_due: false,
            fault: None,
        };
        (0..u32::from(self.cpus).pow(self.threads.into()))
            .map(|places| self.with_places(state, places))
            .collect()
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        self.carry_on_actions(state, out);
        self.begin_actions(state, out);
    }

    fn apply(&self, state: &State, action: Action) -> State {
        course::run(self, state, action, |_, _| {}).expect("enabled actions come to their ends")
    }

    fn canonical(&self, state: &State) -> State {
        if self.symmetric { renaming::representative(self, state) } else { *state }
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        properties::broken(self, state)
    }

    fn begins(&self, before: &State, action: Action) -> bool {
        match action {
            Action::Cpu(_) | Action::Drain(_) | Action::Visit(..) | Action::Agent(_) => false,
            // A preempted scan waits for its thread.
            Action::Switch(_, Some(thread)) => !before.scans(thread),
            _ => true,
        }
    }

    fn at_rest(&self, state: &State) -> bool {
        state.cpus.iter().all(|cpu| cpu.step == CpuStep::Rest)
            && state.agents == [Agent::Idle; AGENTS]
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        narrate::narrate(self, before, action)
    }

    fn picture(&self, state: &State) -> String {
        narrate::picture(self, state)
    }
}
