//! Counts and findings of a campaign.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::injection::Injection;

/// The figures of a campaign, or of several.
#[derive(Debug, Default)]
pub struct Tally {
    /// The descriptors of the sections whose every instruction was interrupted.
    pub sections: BTreeSet<u64>,
    /// Their instructions, by address.
    pub instructions: BTreeSet<u64>,
    /// Places outside of sections that were interrupted.
    pub outside: BTreeSet<u64>,
    /// Different interruptions: an instruction, in one round, in one way.
    pub points: u64,
    /// Operations that were run under a script.
    pub rounds: u64,
    /// Rounds that had to be repeated because the kernel preempted the thread first.
    pub repeated: u64,
    /// Arrivals at an abort pad because of an interruption.
    pub aborts: u64,
    /// Arrivals at an abort pad of a thread that is not known to have been interrupted; the rounds
    /// were repeated.
    pub unexplained: u64,
    /// Rounds in which nothing happened for too long, once; they were repeated.
    pub late: u64,
    /// Scripts with a step to which the operation did not come, because an abort had sent it
    /// another way.
    pub unreached: u64,
    /// Rounds in which something was lost, doubled or torn.
    pub wrong_effects: u64,
    /// The most tries that one operation made before it did without an ID.
    pub most_tries: usize,
    /// Number of times that each injection took place.
    pub by_injection: BTreeMap<Injection, u64>,
    /// Violations of the requirements.
    pub violations: Vec<String>,
}

impl Tally {
    /// Adds the figures of another campaign.
    pub fn add(&mut self, other: Tally) {
        self.sections.extend(other.sections);
        self.instructions.extend(other.instructions);
        self.outside.extend(other.outside);
        self.points += other.points;
        self.rounds += other.rounds;
        self.repeated += other.repeated;
        self.aborts += other.aborts;
        self.unexplained += other.unexplained;
        self.late += other.late;
        self.unreached += other.unreached;
        self.wrong_effects += other.wrong_effects;
        self.most_tries = self.most_tries.max(other.most_tries);
        for (injection, count) in other.by_injection {
            *self.by_injection.entry(injection).or_default() += count;
        }
        self.violations.extend(other.violations);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sections={} instructions={} outside={} interrupt_points={} rounds={} repeated={} aborts={} \
             unexplained={} late={} unreached={} tries={} violations={}",
            self.sections.len(),
            self.instructions.len(),
            self.outside.len(),
            self.points,
            self.rounds,
            self.repeated,
            self.aborts,
            self.unexplained,
            self.late,
            self.unreached,
            self.most_tries,
            self.violations.len(),
        )
    }
}
