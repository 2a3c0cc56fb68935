//! What a simulation found.

use serde::Serialize;

use super::usage::{Quiet, Usage};
use crate::cost::Class;
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
    /// How many CPUs and IDs were in use at a time.
    pub usage: Usage,
    /// What became of the IDs when wakes did not go astray any more, if that was simulated.
    pub quiet: Option<Quiet>,
    /// The simulated time that passed, in nanoseconds.
    pub elapsed: Ns,
    /// Which CPU used which ID when, if that was asked for.
    pub spans: Vec<Span>,
}

impl Outcome {
    /// All timed bursts.
    pub fn bursts(&self) -> u64 {
        self.classes.iter().map(|total| total.bursts).sum()
    }

    /// The mean cost of a timed burst and of finding its ID, in nanoseconds; not a number if there
    /// was none.
    pub fn ns_per_burst(&self) -> f64 {
        (self.classes_ns() + self.expense.timed_work_ns) as f64 / self.bursts() as f64
    }

    fn classes_ns(&self) -> Ns {
        self.classes.iter().map(|total| total.ns).sum()
    }

    /// The shares of all classes.
    pub fn shares(&self) -> Vec<Share> {
        let bursts = self.bursts() as f64;
        // By way of the mean, which rounds: so the last digits of shares stay what they were.
        let ns = self.classes_ns() as f64 / bursts * bursts;
        let share = |class: Class| {
            let total = self.classes[class as usize];
            Share { class, bursts: total.bursts as f64 / bursts, cost: total.ns as f64 / ns }
        };
        Class::ALL.map(share).to_vec()
    }

    /// Adds what another run found, as if both were one: counts add up, bounds are the larger ones.
    pub fn add(&mut self, other: &Outcome) {
        for (ours, theirs) in self.classes.iter_mut().zip(&other.classes) {
            ours.bursts += theirs.bursts;
            ours.ns += theirs.ns;
        }
        self.ids_distinct = self.ids_distinct.max(other.ids_distinct);
        self.ids_bound = self.ids_bound.max(other.ids_bound);
        self.memory = self.memory.max(other.memory);
        self.work += other.work;
        let (ours, theirs) = (&mut self.scheduling, &other.scheduling);
        ours.wakes += theirs.wakes;
        ours.switches += theirs.switches;
        ours.ticks += theirs.ticks;
        ours.migrations += theirs.migrations;
        self.expense.add(&other.expense);
        self.usage.add(&other.usage);
        if let Some(quiet) = &other.quiet {
            self.quiet.get_or_insert_default().add(quiet);
        }
        self.elapsed += other.elapsed;
    }
}
