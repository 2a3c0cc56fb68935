//! The engine: CPUs, threads and processes, and what happens to them, event by event.
//!
//! A CPU has a queue of threads that wait for it and runs one at a time. It interrupts whoever runs at each tick,
//! and lets the next one run if the slice is over. A thread that wakes runs where it ran last if that CPU
//! is idle, else on an idle one nearby; a CPU that becomes idle takes a waiting thread from the nearest CPU
//! that has one (`scheduler.rs`). What threads do is a program of operations (`script.rs`); what their
//! bursts cost, see [`crate::cost`].
//!
//! The order of all that happens at one time is the order in which it was asked for, and all randomness comes from
//! one generator: the same seed gives the same result on every machine.

mod census;
mod outcome;
mod process;
mod queue;
mod scheduler;
mod script;
mod thread;
mod toll;

pub use census::{Census, Quiet, Watched};
pub use outcome::{Expense, Outcome, Scheduling, Share, Span, Tally};

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::Ns;
use crate::cost::Prices;
use crate::cpu_set::CpuSet;
use crate::idle_history::IdleHistory;
use crate::machine::Machine;
use crate::policies::{Entry, Id, Work};
use crate::random::Random;
use crate::topology::{Cpu, Topology};
use crate::workload::{Deed, Program};
use process::ProcessState;
use queue::{Event, Queue, Ticket};
use thread::{State, ThreadState};

/// Bytes of an area that a burst writes to.
pub const AREA_BYTES: u64 = 16384;

/// A CPU.
#[derive(Debug, Default)]
struct CpuState {
    runs: Option<u32>,
    /// Threads that wait for it.
    waiting: VecDeque<u32>,
    /// The event that it waits for; earlier ones are void.
    ticket: Ticket,
    /// When what it does ends.
    ends: Ns,
    next_tick: Ns,
    /// Since when the thread runs.
    since: Ns,
    /// When it last stopped to run one.
    stopped: Option<Ns>,
    /// The ID that the thread used, and since when.
    used: Option<(Id, Ns)>,
}

/// A simulation of one program on one machine with one policy.
pub struct Simulation<'a> {
    program: &'a Program,
    policy: &'static Entry,
    topology: Topology,
    prices: Prices,
    tick: Ns,
    slice: Ns,
    random: Random,
    now: Ns,
    queue: Queue,
    cpus: Vec<CpuState>,
    threads: Vec<ThreadState>,
    /// Places of threads that ended.
    free_threads: Vec<u32>,
    /// Threads that an event will wake, and groups that an event will begin.
    expected: u32,
    processes: Vec<ProcessState>,
    free_processes: Vec<u32>,
    /// The CPUs that the program may use.
    usable: Rc<CpuSet>,
    pinned: Vec<Rc<CpuSet>>,
    idle: CpuSet,
    /// CPUs whose whole core is idle.
    idle_cores: CpuSet,
    /// CPUs with waiting threads.
    crowded: CpuSet,
    waiting: u32,
    /// The CPUs near a CPU: by last-level cache, and by socket.
    l3s: Vec<CpuSet>,
    sockets: Vec<CpuSet>,
    cores: Vec<IdleHistory>,
    core_cpus: Vec<Vec<Cpu>>,
    spans_wanted: usize,
    /// When the census is taken next.
    next_look: Ns,
    /// From when on no wake goes astray, if any does.
    quiet_from: Option<Ns>,
    /// When the first process went through a slow path for the first time when it had been quiet for long.
    asked: Option<Ns>,
    outcome: Outcome,
}

/// How many events are simulated between two looks at whether to stop.
const EVENTS_PER_LOOK: u64 = 1 << 14;

impl<'a> Simulation<'a> {
    /// Prepares a simulation.
    pub fn new(
        machine: &Machine,
        program: &'a Program,
        policy: &'static Entry,
        seed: u64,
    ) -> Simulation<'a> {
        let topology = machine.topology.clone();
        let cpus = topology.cpus();
        let all = || 0..cpus;
        let sets = |count: u32, of: &dyn Fn(Cpu) -> u32| -> Vec<CpuSet> {
            let members = |n| all().filter(move |&cpu| of(cpu) == n);
            (0..count).map(|n| CpuSet::of(cpus, members(n))).collect()
        };
        let l3s = sets(topology.l3s(), &|cpu| topology.place(cpu).l3);
        let sockets = sets(topology.sockets(), &|cpu| topology.place(cpu).socket);
        let mut core_cpus = vec![Vec::new(); topology.cores() as usize];
        all().for_each(|cpu| core_cpus[topology.place(cpu).core as usize].push(cpu));
        let pinned = all().map(|cpu| Rc::new(CpuSet::of(cpus, [cpu]))).collect();
        let mut simulation = Simulation {
            program,
            policy,
            prices: Prices::new(machine, program.memory),
            tick: machine.kernel.tick_ns(),
            slice: (machine.kernel.slice_ms.value * crate::MS as f64) as Ns,
            random: Random::new(seed),
            now: 0,
            queue: Queue::default(),
            cpus: all().map(|_| CpuState::default()).collect(),
            threads: Vec::new(),
            free_threads: Vec::new(),
            expected: 0,
            processes: Vec::new(),
            free_processes: Vec::new(),
            usable: Rc::new(CpuSet::of(cpus, program.cpus.iter().copied())),
            pinned,
            idle: CpuSet::of(cpus, all()),
            idle_cores: CpuSet::of(cpus, all()),
            crowded: CpuSet::empty(cpus),
            waiting: 0,
            l3s,
            sockets,
            cores: vec![IdleHistory::default(); topology.cores() as usize],
            core_cpus,
            spans_wanted: 0,
            next_look: census::PERIOD,
            asked: None,
            quiet_from: program.wakes.map(|wakes| wakes.until),
            outcome: Outcome::default(),
            topology,
        };
        simulation.begin();
        simulation
    }

    /// Also notes which CPU used which ID when, the first so many times.
    pub fn record_spans(mut self, most: usize) -> Simulation<'a> {
        self.spans_wanted = most;
        self
    }

    /// Simulates until the duration is over, nothing but acts from outside can happen any more, or `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) -> Outcome {
        let end = self.program.duration.unwrap_or(Ns::MAX);
        let mut until_look = EVENTS_PER_LOOK;
        while let Some((at, ticket, event)) = self.queue.take() {
            if at > end {
                self.now = end;
                break;
            }
            self.look(at);
            self.now = at;
            self.happen(ticket, event);
            until_look -= 1;
            if until_look == 0 {
                until_look = EVENTS_PER_LOOK;
                if stop.load(Relaxed) {
                    break;
                }
            }
        }
        self.finish()
    }

    fn begin(&mut self) {
        for (number, act) in self.program.acts.iter().enumerate() {
            self.queue.put(act.at, Event::Act(number as u32));
        }
        for _ in 0..self.program.processes {
            let process = self.new_process();
            self.pre_fault(process);
            let groups = self.program.groups.len() as u32;
            self.processes[process as usize].unborn = groups;
            self.expected += groups;
            for (group, description) in (0..).zip(&self.program.groups) {
                match description.start {
                    0 => self.begin_group(process, group),
                    start => drop(self.queue.put(start, Event::Begin(process * groups + group))),
                }
            }
        }
    }

    fn begin_group(&mut self, process: u32, group: u32) {
        self.expected -= 1;
        self.processes[process as usize].unborn -= 1;
        let description = &self.program.groups[group as usize];
        for nth in 0..description.count {
            let affinity = match description.pinned {
                true => self.pinned[self.program.cpus[nth as usize] as usize].clone(),
                false => self.usable.clone(),
            };
            self.new_thread(process, group, affinity, None, 0);
        }
        self.bury_if_over(process);
    }

    fn happen(&mut self, ticket: Ticket, event: Event) {
        match event {
            Event::Cpu(cpu) if self.cpus[cpu as usize].ticket == ticket => self.cpu_event(cpu),
            Event::Cpu(_) => {}
            Event::Wake(thread) if self.threads[thread as usize].alarm == Some(ticket) => {
                self.silence(thread);
                self.wake(thread);
            }
            Event::Wake(_) => {}
            Event::Act(act) => self.act(act),
            Event::Begin(number) => {
                let groups = self.program.groups.len() as u32;
                self.begin_group(number / groups, number % groups);
            }
        }
    }

    fn act(&mut self, number: u32) {
        let act = self.program.acts[number as usize];
        let cpus = &self.program.cpus;
        let chosen: Vec<Cpu> = match act.deed {
            Deed::Confine(count) => cpus[..count as usize].to_vec(),
            Deed::Wander(count) => {
                let first = self.random.below(cpus.len() as u64) as usize;
                cpus.iter().cycle().skip(first).take(count as usize).copied().collect()
            }
        };
        let affinity = Rc::new(CpuSet::of(self.topology.cpus(), chosen));
        self.usable = affinity.clone();
        for thread in 0..self.threads.len() as u32 {
            self.set_affinity(thread, affinity.clone());
        }
        let is_alive = self.expected > 0 || self.cpus.iter().any(|cpu| cpu.runs.is_some());
        if let Some(every) = act.every.filter(|_| is_alive) {
            self.queue.put(self.now + every, Event::Act(number));
        }
    }

    fn finish(mut self) -> Outcome {
        for cpu in 0..self.topology.cpus() {
            self.end_span(cpu);
            if self.cpus[cpu as usize].runs.is_some() {
                self.note_run(cpu);
            }
        }
        self.last_look();
        for process in 0..self.processes.len() as u32 {
            self.account(process);
        }
        self.outcome.elapsed = self.now;
        self.outcome
    }

    /// Adds what a process used and what its policy did to the outcome.
    fn account(&mut self, process: u32) {
        self.account_memory(process);
        self.outcome.work += self.processes[process as usize].policy.work();
    }

    /// Adds the memory of a process, which it is about to lose, to the outcome.
    fn account_memory(&mut self, process: u32) {
        let areas = &self.processes[process as usize].areas;
        let touched = areas.iter().filter(|touch| touch.is_some()).count() as u32;
        let outcome = &mut self.outcome;
        outcome.ids_distinct = outcome.ids_distinct.max(touched);
        outcome.ids_bound = outcome.ids_bound.max(areas.len() as u32);
        outcome.memory += u64::from(touched) * AREA_BYTES;
    }

    /// Accounts for a process whose last thread has ended, and lets another one take its place.
    fn bury_if_over(&mut self, process: u32) {
        let state = &self.processes[process as usize];
        if state.users > 0 || state.unborn > 0 {
            return;
        }
        self.account(process);
        let groups = self.program.groups.len();
        let fresh = ProcessState::new((self.policy.create)(&self.topology), &self.topology, groups);
        self.processes[process as usize] = fresh;
        self.free_processes.push(process);
    }
}

impl fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Simulation");
        debug.field("policy", &self.policy.name).field("now", &self.now).finish_non_exhaustive()
    }
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.steals += other.steals;
        self.scans += other.scans;
        self.expired += other.expired;
        self.slow_paths += other.slow_paths;
    }
}
