//! What a simulation found.

use serde::Serialize;

use crate::Ns;
use crate::cost::Class;
use crate::policies::{Id, Work};
use crate::topology::Cpu;

/// Bursts of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
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

/// What a simulation found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Timed bursts by class, in the order of [`Class::ALL`].
    pub classes: [Tally; 6],
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
    /// The simulated time that passed, in nanoseconds.
    pub elapsed: Ns,
    /// Which CPU used which ID when, if that was asked for.
    pub spans: Vec<Span>,
}

impl Outcome {
    /// All timed bursts.
    pub fn bursts(&self) -> u64 {
        self.classes.iter().map(|tally| tally.bursts).sum()
    }

    /// The mean cost of a timed burst, in nanoseconds; not a number if there was none.
    pub fn ns_per_burst(&self) -> f64 {
        let ns: Ns = self.classes.iter().map(|tally| tally.ns).sum();
        ns as f64 / self.bursts() as f64
    }

    /// The shares of all classes.
    pub fn shares(&self) -> Vec<Share> {
        let bursts = self.bursts() as f64;
        let ns = self.ns_per_burst() * bursts;
        let share = |class: Class| {
            let tally = self.classes[class as usize];
            Share { class, bursts: tally.bursts as f64 / bursts, cost: tally.ns as f64 / ns }
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
        self.elapsed += other.elapsed;
    }
}
