//! What a simulation found.

use serde::Serialize;

use super::usage::{Quiet, Usage};
use crate::cost::{Class, Found};
use crate::policies::{Id, Work};
use crate::time::Ns;
use crate::topology::Cpu;

/// Bursts of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ClassTotal {
    /// How many.
    pub bursts: u64,
    /// What they cost together, in nanoseconds.
    pub ns: Ns,
}

/// The share of bursts of one class.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Share {
    /// The class.
    pub class: Class,
    /// Its share of all bursts.
    pub bursts: f64,
    /// Its share of their cost.
    pub cost: f64,
}

/// A CPU used one ID for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The CPU.
    pub cpu: Cpu,
    /// The ID.
    pub id: Id,
    /// From, in nanoseconds.
    pub from: Ns,
    /// To, in nanoseconds.
    pub to: Ns,
}

/// What the scheduler did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Scheduling {
    /// Threads woken.
    pub wakes: u64,
    /// Changes of what runs on a CPU.
    pub switches: u64,
    /// Timer ticks on CPUs that ran something.
    pub ticks: u64,
    /// Threads that went to another CPU.
    pub migrations: u64,
}

impl Scheduling {
    /// All of these events.
    pub fn events(&self) -> u64 {
        self.wakes + self.switches + self.ticks + self.migrations
    }
}

/// What became of the time of CPUs, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Expense {
    /// For which they ran threads.
    pub run_ns: Ns,
    /// Of that, what threads spent on the work of policies: slow paths with their fences, and
    /// scans.
    pub work_ns: Ns,
    /// Of that, what was spent to find the IDs of timed bursts.
    pub timed_work_ns: Ns,
    /// Threads interrupted by fences.
    pub interrupts: u64,
    /// What these threads lost.
    pub interrupted_ns: Ns,
}

impl Expense {
    /// The share of the run time that policies cost: their work, and what it interrupted. Not a
    /// number if nothing ran.
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

/// What CPU quotas did, of all processes together: `cpu.stat` of cgroup v2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Throttling {
    /// Periods that ended in which something ran.
    pub periods: u64,
    /// How often a CPU was throttled.
    pub throttled: u64,
    /// For how long CPUs were, all together, in nanoseconds.
    pub throttled_ns: Ns,
}

impl Throttling {
    fn add(&mut self, other: &Throttling) {
        self.periods += other.periods;
        self.throttled += other.throttled;
        self.throttled_ns += other.throttled_ns;
    }
}

/// What a simulation found of one of the programs: what [`Outcome`] has of all together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartOutcome {
    /// Timed bursts by class, in the order of [`Class::ALL`].
    pub classes: [ClassTotal; 6],
    /// Distinct IDs of the process that used most of them.
    pub ids_distinct: u32,
    /// One more than the largest ID that any burst used.
    pub ids_bound: u32,
    /// Memory that bursts touched, of all processes, in bytes.
    pub memory: u64,
    /// What the policy did for its processes.
    pub work: Work,
    /// What became of the time for which its threads ran.
    pub expense: Expense,
    /// What CPU quotas did to its processes.
    pub throttling: Throttling,
}

impl PartOutcome {
    /// All timed bursts.
    pub fn bursts(&self) -> u64 {
        bursts(&self.classes)
    }

    /// The mean cost of a timed burst and of finding its ID, in nanoseconds; not a number if there
    /// was none.
    pub fn ns_per_burst(&self) -> f64 {
        ns_per_burst(&self.classes, &self.expense)
    }

    /// The shares of all classes.
    pub fn shares(&self) -> Vec<Share> {
        shares(&self.classes)
    }

    /// Adds what another run found.
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
    // By way of the mean, which rounds: so the last digits of shares stay what they were.
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

/// What a simulation found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Timed bursts by class, in the order of [`Class::ALL`].
    pub classes: [ClassTotal; 6],
    /// Distinct IDs of the process that used most of them.
    pub ids_distinct: u32,
    /// One more than the largest ID that any burst used: what an array indexed by IDs needs.
    pub ids_bound: u32,
    /// Memory that bursts touched, of all processes, in bytes.
    pub memory: u64,
    /// What the policy did.
    pub work: Work,
    /// What the scheduler did.
    pub scheduling: Scheduling,
    /// What became of the time.
    pub expense: Expense,
    /// What CPU quotas did.
    pub throttling: Throttling,
    /// The same of each program, in the order of the file; what is above is their sum.
    pub parts: Vec<PartOutcome>,
    /// How many CPUs and IDs were in use at a time.
    pub usage: Usage,
    /// What became of the IDs when wakes did not go astray any more, if that was simulated.
    pub quiet: Option<Quiet>,
    /// The simulated time that passed, in nanoseconds.
    pub elapsed: Ns,
    /// Which CPU used which ID when, if that was asked for.
    pub spans: Vec<Span>,
    /// What each timed burst found at first, if that was asked for.
    pub found: Vec<Found>,
}

impl Outcome {
    /// All timed bursts.
    pub fn bursts(&self) -> u64 {
        bursts(&self.classes)
    }

    /// The mean cost of a timed burst and of finding its ID, in nanoseconds; not a number if there
    /// was none.
    pub fn ns_per_burst(&self) -> f64 {
        ns_per_burst(&self.classes, &self.expense)
    }

    /// The shares of all classes.
    pub fn shares(&self) -> Vec<Share> {
        shares(&self.classes)
    }

    /// Nothing yet, of this many programs.
    pub(super) fn of(parts: usize) -> Outcome {
        Outcome { parts: vec![PartOutcome::default(); parts], ..Outcome::default() }
    }

    /// Makes the figures of all programs the sums of theirs, which the simulation counts.
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

    /// Adds what another run found, as if both were one: counts add up, bounds are the larger ones.
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
