//! The results of a simulation.

use serde::Serialize;

use super::usage::{Quiet, Usage};
use crate::cost::{Class, Found};
use crate::policies::{Id, Work};
use crate::time::Ns;
use crate::topology::Cpu;

/// Bursts of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ClassTotal {
    /// Number of bursts.
    pub bursts: u64,
    /// Their total cost in nanoseconds.
    pub ns: Ns,
}

/// The share of one class in all bursts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Share {
    /// The class.
    pub class: Class,
    /// Its share of the number of bursts.
    pub bursts: f64,
    /// Its share of the cost of bursts.
    pub cost: f64,
}

/// A period in which a CPU used one ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The CPU.
    pub cpu: Cpu,
    /// The ID.
    pub id: Id,
    /// Start in nanoseconds.
    pub from: Ns,
    /// End in nanoseconds.
    pub to: Ns,
}

/// Counts of scheduler events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Scheduling {
    /// Number of threads woken.
    pub wakes: u64,
    /// Number of changes of the thread that a CPU runs.
    pub switches: u64,
    /// Number of timer ticks on CPUs that ran a thread.
    pub ticks: u64,
    /// Number of times that a thread moved to another CPU.
    pub migrations: u64,
}

impl Scheduling {
    /// Returns the number of all these events.
    pub fn events(&self) -> u64 {
        self.wakes + self.switches + self.ticks + self.migrations
    }
}

/// Use of CPU time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Expense {
    /// Time for which CPUs ran threads.
    pub run_ns: Ns,
    /// The part of `run_ns` that threads spent on the work of policies: slow paths with their
    /// fences, and scans.
    pub work_ns: Ns,
    /// The part of `work_ns` that was spent to find the IDs of timed bursts.
    pub timed_work_ns: Ns,
    /// Number of threads interrupted by fences.
    pub interrupts: u64,
    /// Time that these interruptions cost.
    pub interrupted_ns: Ns,
}

impl Expense {
    /// Returns the share of the run time that policies cost: their work, and their interruptions.
    /// Not a number if nothing ran.
    pub fn share(&self) -> f64 {
        (self.work_ns + self.interrupted_ns) as f64 / self.run_ns as f64
    }

    fn add(&mut self, other: &Expense) {
        self.run_ns += other.run_ns;
        self.work_ns += other.work_ns;
        self.timed_work_ns += other.timed_work_ns;
        self.interrupts += other.interrupts;
        self.interrupted_ns += other.interrupted_ns;
    }
}

/// Effects of CPU quotas, summed over all processes: `cpu.stat` of cgroup v2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Throttling {
    /// Number of ended periods in which a thread ran.
    pub periods: u64,
    /// Number of times that a CPU was throttled.
    pub throttled: u64,
    /// Total time for which CPUs were throttled, in nanoseconds.
    pub throttled_ns: Ns,
}

impl Throttling {
    fn add(&mut self, other: &Throttling) {
        self.periods += other.periods;
        self.throttled += other.throttled;
        self.throttled_ns += other.throttled_ns;
    }
}

/// The results of one program; [`Outcome`] has the results of all programs together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartOutcome {
    /// Timed bursts by class, in the order of [`Class::ALL`].
    pub classes: [ClassTotal; 6],
    /// Number of distinct IDs of the process that used most.
    pub ids_distinct: u32,
    /// One more than the largest ID that any burst used.
    pub ids_bound: u32,
    /// Memory that bursts touched, of all processes, in bytes.
    pub memory: u64,
    /// Work of the policy for the program's processes.
    pub work: Work,
    /// Use of the program's CPU time.
    pub expense: Expense,
    /// Effects of CPU quotas on the program's processes.
    pub throttling: Throttling,
}

impl PartOutcome {
    /// Returns the number of timed bursts.
    pub fn bursts(&self) -> u64 {
        bursts(&self.classes)
    }

    /// Returns the mean cost of a timed burst, including the lookup of its ID, in nanoseconds. Not
    /// a number if there was no burst.
    pub fn ns_per_burst(&self) -> f64 {
        ns_per_burst(&self.classes, &self.expense)
    }

    /// Returns the shares of all classes.
    pub fn shares(&self) -> Vec<Share> {
        shares(&self.classes)
    }

    /// Adds the results of another run.
    fn add(&mut self, other: &PartOutcome) {
        add_classes(&mut self.classes, &other.classes);
        self.ids_distinct = self.ids_distinct.max(other.ids_distinct);
        self.ids_bound = self.ids_bound.max(other.ids_bound);
        self.memory = self.memory.max(other.memory);
        self.work += other.work;
        self.expense.add(&other.expense);
        self.throttling.add(&other.throttling);
    }
}

fn bursts(classes: &[ClassTotal]) -> u64 {
    classes.iter().map(|total| total.bursts).sum()
}

fn ns_of(classes: &[ClassTotal]) -> Ns {
    classes.iter().map(|total| total.ns).sum()
}

fn ns_per_burst(classes: &[ClassTotal], expense: &Expense) -> f64 {
    (ns_of(classes) + expense.timed_work_ns) as f64 / bursts(classes) as f64
}

fn shares(classes: &[ClassTotal]) -> Vec<Share> {
    let bursts = bursts(classes) as f64;
    // Multiplying the rounded mean keeps the last digits of the shares as they have always been.
    let ns = ns_of(classes) as f64 / bursts * bursts;
    let share = |class: Class| {
        let total = classes[class as usize];
        Share { class, bursts: total.bursts as f64 / bursts, cost: total.ns as f64 / ns }
    };
    Class::ALL.map(share).to_vec()
}

fn add_classes(ours: &mut [ClassTotal], theirs: &[ClassTotal]) {
    for (ours, theirs) in ours.iter_mut().zip(theirs) {
        ours.bursts += theirs.bursts;
        ours.ns += theirs.ns;
    }
}

/// The results of a simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Timed bursts by class, in the order of [`Class::ALL`].
    pub classes: [ClassTotal; 6],
    /// Number of distinct IDs of the process that used most.
    pub ids_distinct: u32,
    /// One more than the largest ID that any burst used: the length of an array indexed by IDs.
    pub ids_bound: u32,
    /// Memory that bursts touched, of all processes, in bytes.
    pub memory: u64,
    /// Work of the policy.
    pub work: Work,
    /// Events of the scheduler.
    pub scheduling: Scheduling,
    /// Use of CPU time.
    pub expense: Expense,
    /// Effects of CPU quotas.
    pub throttling: Throttling,
    /// The results of each program, in the order of the file. The fields that [`PartOutcome`] has
    /// too are their sums or maxima.
    pub parts: Vec<PartOutcome>,
    /// Number of CPUs and IDs in use at a time, if requested.
    pub usage: Usage,
    /// IDs after wakes stopped going astray, if that was simulated.
    pub quiet: Option<Quiet>,
    /// Simulated time, in nanoseconds.
    pub elapsed: Ns,
    /// Periods in which a CPU used one ID, if requested.
    pub spans: Vec<Span>,
    /// State of the area at the first of each timed burst, if requested.
    pub found: Vec<Found>,
}

impl Outcome {
    /// Returns the number of timed bursts.
    pub fn bursts(&self) -> u64 {
        bursts(&self.classes)
    }

    /// Returns the mean cost of a timed burst, including the lookup of its ID, in nanoseconds. Not
    /// a number if there was no burst.
    pub fn ns_per_burst(&self) -> f64 {
        ns_per_burst(&self.classes, &self.expense)
    }

    /// Returns the shares of all classes.
    pub fn shares(&self) -> Vec<Share> {
        shares(&self.classes)
    }

    /// Creates an empty outcome of this many programs.
    pub(super) fn with_parts(parts: usize) -> Outcome {
        Outcome { parts: vec![PartOutcome::default(); parts], ..Outcome::default() }
    }

    /// Sets the values of all programs together from the programs' values, which the simulation
    /// counts.
    pub(super) fn sum_up(&mut self) {
        for part in &self.parts {
            add_classes(&mut self.classes, &part.classes);
            self.ids_distinct = self.ids_distinct.max(part.ids_distinct);
            self.ids_bound = self.ids_bound.max(part.ids_bound);
            self.memory += part.memory;
            self.work += part.work;
            self.expense.add(&part.expense);
            self.throttling.add(&part.throttling);
        }
    }

    /// Adds the results of another run: counts are summed, bounds and memory are the larger ones.
    pub fn add(&mut self, other: &Outcome) {
        add_classes(&mut self.classes, &other.classes);
        self.ids_distinct = self.ids_distinct.max(other.ids_distinct);
        self.ids_bound = self.ids_bound.max(other.ids_bound);
        self.memory = self.memory.max(other.memory);
        self.work += other.work;
        self.parts.resize(self.parts.len().max(other.parts.len()), PartOutcome::default());
        for (ours, theirs) in self.parts.iter_mut().zip(&other.parts) {
            ours.add(theirs);
        }
        let (ours, theirs) = (&mut self.scheduling, &other.scheduling);
        ours.wakes += theirs.wakes;
        ours.switches += theirs.switches;
        ours.ticks += theirs.ticks;
        ours.migrations += theirs.migrations;
        self.expense.add(&other.expense);
        self.throttling.add(&other.throttling);
        self.usage.add(&other.usage);
        if let Some(quiet) = &other.quiet {
            self.quiet.get_or_insert_default().add(quiet);
        }
        self.elapsed += other.elapsed;
        self.found.extend_from_slice(&other.found);
    }
}
