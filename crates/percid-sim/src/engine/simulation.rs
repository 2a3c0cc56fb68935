//! A simulation: its state and its event loop.

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::cpus::Cpus;
use super::index::{FIRST_PROCESS, OfProcess, OfThread, ProcessIndex, Slab};
use super::outcome::Outcome;
use super::process::ProcessState;
use super::queue::{Event, Queue, Ticket};
use super::quota::Bandwidth;
use super::thread::ThreadState;
use super::usage::Sampler;
use crate::caches::Caches;
use crate::contract::Violation;
use crate::contract::holders::Holders;
use crate::cost::Prices;
use crate::cpu_set::CpuSet;
use crate::machine::Machine;
use crate::policies::PolicySpec;
use crate::random::Random;
use crate::run_control::RunControl;
use crate::time::{MS, Ns};
use crate::topology::Cpu;
use crate::workload::{Confinement, GroupIndex, Part, Program};

/// Number of bytes of an area that a burst writes to.
pub const AREA_BYTES: u64 = 16384;

/// A simulation of one or several programs on one machine with one policy.
pub struct Simulation<'a> {
    pub(super) program: &'a Program,
    pub(super) policy: &'static PolicySpec,
    /// Prices of each program.
    pub(super) prices: Vec<Prices>,
    /// Time between two ticks.
    pub(super) tick: Ns,
    /// Run time after which a waiting thread replaces the running one.
    pub(super) slice: Ns,
    pub(super) random: Random,
    pub(super) now: Ns,
    pub(super) queue: Queue,
    pub(super) cpus: Cpus,
    pub(super) caches: Caches,
    pub(super) threads: Slab<OfThread, ThreadState>,
    pub(super) processes: Slab<OfProcess, ProcessState>,
    /// Number of threads that an event will wake, and of groups that an event will begin.
    pub(super) expected: u32,
    /// The CPU quotas of processes.
    pub(super) bandwidths: Vec<Bandwidth>,
    /// Approximate number of events of the run.
    expected_events: u64,
    /// The CPUs that the program may use.
    usable: Rc<CpuSet>,
    pub(super) spans_wanted: usize,
    pub(super) notes_found: bool,
    pub(super) sampler: Sampler,
    /// The IDs that the running threads have.
    pub(super) holders: Holders,
    /// The first breach of the policy's contract, which ends the run.
    pub(super) violation: Option<Violation>,
    pub(super) outcome: Outcome,
}

/// Number of simulated events between two checks of `stop`.
const EVENTS_PER_LOOK: u64 = 1 << 14;

impl<'a> Simulation<'a> {
    /// Creates a simulation, ready to run.
    pub fn new(
        machine: &Machine,
        program: &'a Program,
        policy: &'static PolicySpec,
        seed: u64,
    ) -> Simulation<'a> {
        let topology = machine.topology.clone();
        let mut simulation = Simulation {
            program,
            policy,
            prices: program.parts.iter().map(|part| Prices::new(machine, part.memory)).collect(),
            tick: machine.kernel.tick_ns(),
            slice: (machine.kernel.slice_ms.value * MS as f64) as Ns,
            random: Random::new(seed),
            now: 0,
            queue: Queue::default(),
            threads: Slab::new(),
            processes: Slab::new(),
            expected: 0,
            bandwidths: Vec::new(),
            expected_events: program.expected_events(machine),
            usable: Rc::new(CpuSet::from_cpus(topology.cpus(), program.cpus.iter().copied())),
            cpus: Cpus::new(topology),
            caches: Caches::new(machine),
            spans_wanted: 0,
            notes_found: false,
            sampler: Sampler::new(program.wakes.map(|wakes| wakes.until)),
            holders: Holders::new(machine.topology.cpus()),
            violation: None,
            outcome: Outcome::with_parts(program.parts.len()),
        };
        simulation.begin();
        simulation
    }

    /// Also records the first `most` spans in which a CPU used one ID.
    pub fn record_spans(mut self, most: usize) -> Simulation<'a> {
        self.spans_wanted = most;
        self
    }

    /// Also samples the number of CPUs and IDs in use.
    pub fn record_usage(mut self) -> Simulation<'a> {
        self.sampler.begin();
        self
    }

    /// Also records the state of the area at each timed burst, so that the burst can be priced
    /// again.
    pub fn record_found(mut self) -> Simulation<'a> {
        self.notes_found = true;
        self
    }

    /// Simulates until the duration is over, only changes of affinity are left, or `stop` is set.
    ///
    /// # Errors
    ///
    /// Returns the violation if the policy breaks its [contract](crate::policies::Policy#contract).
    pub fn run(self, stop: &AtomicBool) -> Result<Outcome, Violation> {
        self.run_reporting(stop, |_| {})
    }

    /// Simulates like [`run`](Simulation::run), and reports progress: adds `units` to
    /// `control.done` bit by bit, and all of them by the end.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`run`](Simulation::run).
    pub fn run_watched(self, control: &RunControl, units: u64) -> Result<Outcome, Violation> {
        let mut told = 0;
        let outcome = self.run_reporting(&control.stop, |share| {
            let done = ((units as f64 * share) as u64).min(units);
            control.add(done.saturating_sub(told));
            told = told.max(done);
        });
        control.add(units - told);
        outcome
    }

    /// Simulates, and reports the completed share at intervals. It is the share of the duration or,
    /// if there is none, of the expected number of events.
    fn run_reporting(
        mut self,
        stop: &AtomicBool,
        mut report: impl FnMut(f64),
    ) -> Result<Outcome, Violation> {
        let end = self.program.duration.unwrap_or(Ns::MAX);
        let mut events = 0u64;
        while let Some((at, ticket, event)) = self.queue.take() {
            if at > end {
                self.now = end;
                break;
            }
            self.sampler.sample(at, &self.cpus, &self.processes[FIRST_PROCESS]);
            self.now = at;
            self.happen(ticket, event);
            if self.violation.is_some() {
                break;
            }
            events += 1;
            if events.is_multiple_of(EVENTS_PER_LOOK) {
                report(match self.program.duration {
                    Some(duration) => self.now as f64 / duration as f64,
                    None => events as f64 / self.expected_events as f64,
                });
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
        let program: &'a Program = self.program;
        for (number, part) in program.parts.iter().enumerate() {
            for _ in 0..part.processes {
                self.begin_process(number, part);
            }
        }
    }

    fn begin_process(&mut self, number: usize, part: &Part) {
        let process = self.new_process(number);
        self.pre_fault(process);
        self.processes[process].bandwidth = part.quota.map(|q| self.new_bandwidth(q, number));
        let groups = part.groups.len() as u32;
        self.processes[process].unborn = groups;
        self.expected += groups;
        for group in part.group_indices() {
            match self.program.group(group).start {
                0 => self.begin_group(process, group),
                start => drop(self.queue.put(start, self.begin_event(process, group))),
            }
        }
    }

    /// Returns the event that begins a group of a process; its value encodes both.
    fn begin_event(&self, process: ProcessIndex, group: GroupIndex) -> Event {
        Event::Begin(process.number() * self.program.groups.len() as u32 + group.0)
    }

    fn begin_group(&mut self, process: ProcessIndex, group: GroupIndex) {
        self.expected -= 1;
        self.processes[process].unborn -= 1;
        let description = self.program.group(group);
        for nth in 0..description.count {
            let affinity = match description.pinned {
                true => {
                    let cpus = &self.program.cpus;
                    self.affinity_of([cpus[nth as usize % cpus.len()]])
                }
                false => self.usable.clone(),
            };
            self.new_thread(process, group, affinity, None, 0);
        }
        self.end_process_if_over(process);
    }

    fn affinity_of(&self, cpus: impl IntoIterator<Item = Cpu>) -> Rc<CpuSet> {
        Rc::new(CpuSet::from_cpus(self.cpus.topology.cpus(), cpus))
    }

    fn happen(&mut self, ticket: Ticket, event: Event) {
        match event {
            Event::Cpu(cpu) if self.cpus[cpu].ticket == ticket => self.cpu_event(cpu),
            Event::Wake(thread) if self.threads[thread].alarm == Some(ticket) => {
                self.cancel_alarm(thread);
                self.wake(thread);
            }
            // A later event of the same CPU or thread has replaced this one.
            Event::Cpu(_) | Event::Wake(_) => {}
            Event::Affinity(number) => self.change_affinity(number),
            Event::Period(bandwidth) => self.end_period(bandwidth),
            Event::Slack(bandwidth) => self.end_slack(bandwidth),
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
        let is_alive = self.expected > 0 || self.cpus.running() > 0 || self.any_throttled();
        if let Some(every) = change.every.filter(|_| is_alive) {
            self.queue.put(self.now + every, Event::Affinity(number));
        }
    }

    fn finish(mut self) -> Result<Outcome, Violation> {
        for cpu in self.cpus.all() {
            self.end_span(cpu);
            if let Some(thread) = self.cpus[cpu].runs {
                self.note_run(cpu, thread);
            }
        }
        self.finish_throttling();
        self.sampler.finish(self.now, &self.processes[FIRST_PROCESS]);
        for process in self.processes.places() {
            if !self.processes[process].is_over() {
                self.account(process);
            }
        }
        if let Some(violation) = self.violation {
            return Err(violation);
        }
        self.outcome.sum_up();
        Ok(Outcome {
            usage: self.sampler.usage,
            quiet: self.sampler.quiet,
            elapsed: self.now,
            ..self.outcome
        })
    }

    /// Adds the IDs and memory that a process used, and its policy's work, to the outcome.
    fn account(&mut self, process: ProcessIndex) {
        self.account_memory(process);
        self.expect_no_failure(process);
        let state = &self.processes[process];
        self.outcome.parts[state.part].work += state.policy.work();
    }

    /// Adds the memory of a process to the outcome, before the process releases it.
    pub(super) fn account_memory(&mut self, process: ProcessIndex) {
        let state = &self.processes[process];
        let areas = &state.areas;
        let touched = areas.iter().filter(|touch| touch.is_some()).count() as u32;
        let outcome = &mut self.outcome.parts[state.part];
        outcome.ids_distinct = outcome.ids_distinct.max(touched);
        outcome.ids_bound = outcome.ids_bound.max(areas.len() as u32);
        outcome.memory += u64::from(touched) * AREA_BYTES;
    }

    /// Records that a process loses its memory.
    pub(super) fn note_memory_lost(&mut self, process: ProcessIndex) {
        if process == FIRST_PROCESS {
            self.sampler.note_memory_lost();
        }
    }

    /// Accounts for a process whose last thread has ended, and releases its index.
    pub(super) fn end_process_if_over(&mut self, process: ProcessIndex) {
        if self.processes[process].is_over() {
            self.account(process);
            self.processes[process].areas.clear();
            self.note_memory_lost(process);
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
