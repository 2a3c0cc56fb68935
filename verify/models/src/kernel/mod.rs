//! The kernel's slot protocol, generations b to d (Linux 6.4 to 6.18).
//!
//! One model for three generations: [`Generation`] says what c adds to b (the recent ID, expansion
//! before compaction) and what d adds to c (compaction after shrink). [`cpu`] is the context
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
//!    complete. A scan holds no lock.
//! 4. Taking a lock is one step together with the first access under it, releasing it is one step
//!    with the last: nothing that is observable to others lies in between. The slow lock of the
//!    allocator is modelled with steps of its own.
//! 5. At most one scan is in flight (it begins at most once per 100 ms). Migrations are concurrent
//!    if their destinations differ.
//! 6. A scan visits the CPUs of each pass in any order, each once; it counts the set bits once,
//!    between its two passes. A remote clear loads the slot itself.
//! 7. A migration notes at its beginning whether the destination has an ID, and acts on that at its
//!    end. The only writer that could make an unset destination valid in between waits for the lock
//!    that the migration holds.
//! 8. Time is one bit per slot, "stamped 100 ms ago or earlier", and one for the scan.
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
pub mod cpu;
mod narrate;
mod properties;
mod renaming;
pub mod state;

use crate::explore::Model;
use state::{
    AGENTS, Agent, CPUS, Cpu, CpuNr, CpuStep, Place, Scanner, ScannerStep, Slot, State, THREADS,
    Thread, ThreadNr,
};

pub use properties::{DOUBLE_FREE, LEAK, OVERWRITTEN, SHARED_ID, TWO_OWNERS};

/// The protocol's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Linux 6.4 to 6.12: a slot with a time stamp per CPU.
    B,
    /// Linux 6.13: b, the recent ID, and expansion before compaction.
    C,
    /// Linux 6.14 to 6.18: c, and compaction after shrink.
    D,
}

/// How stores reach the other CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// At once.
    Sequential,
    /// The store of the current thread through a store buffer.
    Buffered {
        /// Whether the switch has its full barrier.
        barrier: bool,
    },
}

/// How long a remote agent may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stalls {
    /// The CPU that runs an agent does nothing else meanwhile, and no time stamp expires while an
    /// agent is at work. A migration runs on its destination.
    Short,
    /// An agent stops anywhere for any time: the widest reading, used where a model is to come out
    /// clean.
    Any,
}

/// What a remote agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It migrates threads, one after the other.
    Mover,
    /// It scans, exactly as described.
    Scanner,
}

/// One configuration of the model.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// The generation.
    pub generation: Generation,
    /// Number of CPUs, all of them allowed; also the number of IDs.
    pub cpus: u8,
    /// Number of threads.
    pub threads: u8,
    /// The remote agents.
    pub agents: &'static [Role],
    /// Whether threads exit.
    pub exits: bool,
    /// Whether slots carry a version tag.
    pub tagged: bool,
    /// How stores reach the other CPUs.
    pub memory: Memory,
    /// How long agents may take.
    pub stalls: Stalls,
    /// Whether two running threads with one ID end the search. Off, it shows what else such a state
    /// leads to.
    pub sharing_ends: bool,
    /// Whether states that differ by the names of CPUs, threads and like agents count as one.
    pub symmetric: bool,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A CPU takes its run-queue lock and stores its new current thread.
    Switch(CpuNr, Option<ThreadNr>),
    /// The current thread of a CPU begins to exit.
    Exit(CpuNr),
    /// A CPU takes the next step of its switch.
    Cpu(CpuNr),
    /// A CPU's store buffer drains.
    Drain(CpuNr),
    /// An agent takes a CPU's run-queue lock, to move a thread there, and loads that CPU's slot.
    Move(u8, ThreadNr, CpuNr),
    /// An agent begins a scan from the tick of a CPU.
    Scan(u8, CpuNr),
    /// A scan goes on to a CPU.
    Visit(u8, CpuNr),
    /// An agent takes its next step.
    Agent(u8),
    /// 100 ms pass.
    Elapse,
}

impl Kernel {
    /// Three CPUs, three threads that may exit, agents that stall anywhere, sequential memory, no
    /// tags.
    #[must_use]
    pub const fn new(generation: Generation, agents: &'static [Role]) -> Self {
        Self {
            generation,
            cpus: CPUS as u8,
            threads: THREADS as u8,
            agents,
            exits: true,
            tagged: false,
            memory: Memory::Sequential,
            stalls: Stalls::Any,
            sharing_ends: true,
            symmetric: true,
        }
    }

    /// Whether CPUs remember the ID that they held last.
    fn remembers(&self) -> bool {
        self.generation != Generation::B
    }

    /// Whether anybody looks at time stamps.
    fn timed(&self) -> bool {
        self.agents.contains(&Role::Scanner)
    }

    /// The bound of generations c and d: `min(nr_cpus_allowed, users)`.
    fn bound(&self, state: &State) -> u8 {
        self.cpus.min(state.users)
    }

    /// Whether the run-queue lock of `cpu` is free and the CPU able to switch.
    fn can_switch(&self, state: &State, cpu: CpuNr) -> bool {
        state.cpu(cpu).step == CpuStep::Rest
            && !state.locked_by_mover(cpu)
            && !(self.stalls == Stalls::Short && state.scanned_from(cpu))
    }

    /// Whether time stamps can expire now.
    fn can_elapse(&self, state: &State) -> bool {
        let changes =
            !state.scan_due || state.cpus[..usize::from(self.cpus)].iter().any(|cpu| !cpu.expired);
        self.timed() && changes && (self.stalls == Stalls::Any || self.at_rest(state))
    }

    fn begin_actions(&self, state: &State, out: &mut Vec<Action>) {
        for cpu in (0..self.cpus).filter(|&cpu| self.can_switch(state, cpu)) {
            let current = state.cpu(cpu).current;
            out.extend(current.map(|_| Action::Switch(cpu, None)));
            out.extend(current.filter(|_| self.exits).map(|_| Action::Exit(cpu)));
            let waiting =
                (0..self.threads).filter(|&t| state.thread(t).place == Place::Waiting(cpu));
            out.extend(waiting.map(|t| Action::Switch(cpu, Some(t))));
        }
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
            let ticking = (0..self.cpus)
                .filter(|&cpu| state.holder(cpu).is_some() && self.can_switch(state, cpu));
            out.extend(ticking.map(|cpu| Action::Scan(agent, cpu)));
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
        let mut next = *state;
        match action {
            Action::Switch(cpu, thread) => cpu::switch(self, &mut next, cpu, thread),
            Action::Exit(cpu) => cpu::exit(self, &mut next, cpu),
            Action::Cpu(cpu) => cpu::step(self, &mut next, cpu),
            Action::Drain(cpu) => cpu::drain(&mut next, cpu),
            Action::Move(agent, thread, to) => {
                agent::begin_move(self, &mut next, agent, thread, to)
            }
            Action::Scan(agent, on) => agent::begin_scan(self, &mut next, agent, on),
            Action::Visit(agent, cpu) => agent::visit(&mut next, agent, cpu),
            Action::Agent(agent) => agent::step(self, &mut next, agent),
            Action::Elapse => {
                next.scan_due = true;
                next.cpus[..usize::from(self.cpus)].iter_mut().for_each(|cpu| cpu.expired = true);
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
        !matches!(action, Action::Cpu(_) | Action::Drain(_) | Action::Visit(..) | Action::Agent(_))
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
