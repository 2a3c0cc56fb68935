//! One simulation: its state, and its course from event to event.

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::cpus::Cpus;
use super::index::{FIRST_PROCESS, OfProcess, OfThread, ProcessIndex, Slab};
use super::outcome::Outcome;
use super::process::ProcessState;
use super::queue::{Event, Queue, Ticket};
use super::thread::ThreadState;
use super::usage::Sampler;
use crate::cost::Prices;
use crate::cpu_set::CpuSet;
use crate::machine::Machine;
use crate::policies::Entry;
use crate::random::Random;
use crate::time::{MS, Ns};
use crate::topology::Cpu;
use crate::workload::{Confinement, GroupIndex, Program};

/// Bytes of an area that a burst writes to.
pub const AREA_BYTES: u64 = 16384;

/// A simulation of one program on one machine with one policy.
pub struct Simulation<'a> {
    pub(super) program: &'a Program,
    pub(super) policy: &'static Entry,
    pub(super) prices: Prices,
    /// The time from one tick to the next.
    pub(super) tick: Ns,
    /// How long a thread runs before a waiting one takes its place.
    pub(super) slice: Ns,
    pub(super) random: Random,
    pub(super) now: Ns,
    pub(super) queue: Queue,
    pub(super) cpus: Cpus,
    pub(super) threads: Slab<OfThread, ThreadState>,
    pub(super) processes: Slab<OfProcess, ProcessState>,
    /// Threads that an event will wake, and groups that an event will begin.
    pub(super) expected: u32,
    /// The CPUs that the program may use.
    usable: Rc<CpuSet>,
    pub(super) spans_wanted: usize,
    pub(super) sampler: Sampler,
    pub(super) outcome: Outcome,
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
        let mut simulation = Simulation {
            program,
            policy,
            prices: Prices::new(machine, program.memory),
            tick: machine.kernel.tick_ns(),
            slice: (machine.kernel.slice_ms.value * MS as f64) as Ns,
            random: Random::new(seed),
            now: 0,
            queue: Queue::default(),
            threads: Slab::new(),
            processes: Slab::new(),
            expected: 0,
            usable: Rc::new(CpuSet::of(topology.cpus(), program.cpus.iter().copied())),
            cpus: Cpus::new(topology),
            spans_wanted: 0,
            sampler: Sampler::new(program.wakes.map(|wakes| wakes.until)),
            outcome: Outcome::default(),
        };
        simulation.begin();
        simulation
    }

    /// Also notes which CPU used which ID when, for the first `most` of these spans.
    pub fn record_spans(mut self, most: usize) -> Simulation<'a> {
        self.spans_wanted = most;
        self
    }

    /// Simulates until the duration is over, nothing but changes of affinity can happen any more,
    /// or `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) -> Outcome {
        let end = self.program.duration.unwrap_or(Ns::MAX);
        let mut until_look = EVENTS_PER_LOOK;
        while let Some((at, ticket, event)) = self.queue.take() {
            if at > end {
                self.now = end;
                break;
            }
            self.sampler.sample(at, &self.cpus, &self.processes[FIRST_PROCESS]);
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
        for (number, change) in (0..).zip(&self.program.affinity_changes) {
            self.queue.put(change.at, Event::Affinity(number));
        }
        for _ in 0..self.program.processes {
            let process = self.new_process();
            self.pre_fault(process);
            let groups = self.program.groups.len() as u32;
            self.processes[process].unborn = groups;
            self.expected += groups;
            for group in self.program.group_indices() {
                match self.program.group(group).start {
                    0 => self.begin_group(process, group),
                    start => drop(self.queue.put(start, self.begin_event(process, group))),
                }
            }
        }
    }

    /// The event that begins a group of a process: one number for both.
    fn begin_event(&self, process: ProcessIndex, group: GroupIndex) -> Event {
        Event::Begin(process.number() * self.program.groups.len() as u32 + group.0)
    }

    fn begin_group(&mut self, process: ProcessIndex, group: GroupIndex) {
        self.expected -= 1;
        self.processes[process].unborn -= 1;
        let description = self.program.group(group);
        for nth in 0..description.count {
            let affinity = match description.pinned {
                true => self.affinity_of([self.program.cpus[nth as usize]]),
                false => self.usable.clone(),
            };
            self.new_thread(process, group, affinity, None, 0);
        }
        self.end_process_if_over(process);
    }

    fn affinity_of(&self, cpus: impl IntoIterator<Item = Cpu>) -> Rc<CpuSet> {
        Rc::new(CpuSet::of(self.cpus.topology.cpus(), cpus))
    }

    fn happen(&mut self, ticket: Ticket, event: Event) {
        match event {
            Event::Cpu(cpu) if self.cpus[cpu].ticket == ticket => self.cpu_event(cpu),
            Event::Wake(thread) if self.threads[thread].alarm == Some(ticket) => {
                self.cancel_alarm(thread);
                self.wake(thread);
            }
            // Another event has taken the place of this one.
            Event::Cpu(_) | Event::Wake(_) => {}
            Event::Affinity(number) => self.change_affinity(number),
            Event::Begin(number) => {
                let groups = self.program.groups.len() as u32;
                self.begin_group(ProcessIndex::new(number / groups), GroupIndex(number % groups));
            }
        }
    }

    fn change_affinity(&mut self, number: u32) {
        let change = self.program.affinity_changes[number as usize];
        let cpus = &self.program.cpus;
        let chosen: Vec<Cpu> = match change.to {
            Confinement::First(count) => cpus[..count as usize].to_vec(),
            Confinement::Random(count) => {
                let first = self.random.below(cpus.len() as u64) as usize;
                cpus.iter().cycle().skip(first).take(count as usize).copied().collect()
            }
        };
        let affinity = self.affinity_of(chosen);
        self.usable = affinity.clone();
        for thread in self.threads.places() {
            self.set_affinity(thread, affinity.clone());
        }
        let is_alive = self.expected > 0 || self.cpus.running() > 0;
        if let Some(every) = change.every.filter(|_| is_alive) {
            self.queue.put(self.now + every, Event::Affinity(number));
        }
    }

    fn finish(mut self) -> Outcome {
        for cpu in self.cpus.all() {
            self.end_span(cpu);
            if self.cpus[cpu].runs.is_some() {
                self.note_run(cpu);
            }
        }
        self.sampler.finish(self.now, &self.processes[FIRST_PROCESS]);
        for process in self.processes.places() {
            if !self.processes[process].is_over() {
                self.account(process);
            }
        }
        Outcome {
            usage: self.sampler.usage,
            quiet: self.sampler.quiet,
            elapsed: self.now,
            ..self.outcome
        }
    }

    /// Adds what a process used and what its policy did to the outcome.
    fn account(&mut self, process: ProcessIndex) {
        self.account_memory(process);
        self.outcome.work += self.processes[process].policy.work();
    }

    /// Adds the memory of a process, which it is about to lose, to the outcome.
    pub(super) fn account_memory(&mut self, process: ProcessIndex) {
        let areas = &self.processes[process].areas;
        let touched = areas.iter().filter(|touch| touch.is_some()).count() as u32;
        let outcome = &mut self.outcome;
        outcome.ids_distinct = outcome.ids_distinct.max(touched);
        outcome.ids_bound = outcome.ids_bound.max(areas.len() as u32);
        outcome.memory += u64::from(touched) * AREA_BYTES;
    }

    /// Accounts for a process whose last thread has ended, and releases its place.
    pub(super) fn end_process_if_over(&mut self, process: ProcessIndex) {
        if self.processes[process].is_over() {
            self.account(process);
            self.processes[process].areas.clear();
            self.processes.release(process);
        }
    }
}

impl fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Simulation");
        debug.field("policy", &self.policy.name).field("now", &self.now).finish_non_exhaustive()
    }
}
