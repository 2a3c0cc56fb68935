//! Which generation of the kernel's IDs explains what was seen, whatever the kernel calls itself.
//!
//! The same schedule is replayed under the policy of every generation, and under that of a kernel
//! without the feature, whose IDs are the numbers of CPUs. A policy that gives the IDs that were
//! seen explains them. Often several do: a process with one thread has the same IDs under most. So
//! the answer may be that it is undecided, and among which.

use std::fmt;

use percid_rules::Generation;

use crate::conformance::Recording;
use crate::policies::{Entry, find, of_generation};

/// Whose IDs they can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// A generation's.
    Of(Generation),
    /// The kernel was built without concurrency IDs: they are the numbers of CPUs.
    CpuNumbers,
}

impl Behaviour {
    /// All of them, the generations first.
    pub fn all() -> impl Iterator<Item = Behaviour> {
        Generation::ALL.into_iter().map(Behaviour::Of).chain([Behaviour::CpuNumbers])
    }

    /// The policy that behaves like this.
    pub fn policy(self) -> &'static Entry {
        match self {
            Behaviour::Of(generation) => of_generation(generation),
            Behaviour::CpuNumbers => find("per-cpu").expect("a policy of that name"),
        }
    }
}

/// In one word.
impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Behaviour::Of(generation) => generation.fmt(f),
            Behaviour::CpuNumbers => f.pad("cpu-numbers"),
        }
    }
}

/// How well one behaviour explains what was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Which.
    pub behaviour: Behaviour,
    /// How many IDs were compared.
    pub compared: usize,
    /// How many of them are others.
    pub different: usize,
}

/// IDs without which nothing is explained.
const FEWEST: usize = 10;

/// One in this number of IDs may be another: a trace may show the order of two CPUs wrongly now and
/// then.
const EXPLAINED_OF: usize = 50;

/// More different IDs than the best one has, up to this number, may be chance.
const CHANCE: usize = 2;

/// The evidence for every behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// In the order of [`Behaviour::all`].
    pub evidence: Vec<Evidence>,
}

impl Default for Explanation {
    fn default() -> Explanation {
        let none = |behaviour| Evidence { behaviour, compared: 0, different: 0 };
        Explanation { evidence: Behaviour::all().map(none).collect() }
    }
}

impl Explanation {
    /// What explains all of some recordings. They must have been checked, as those that were read
    /// are.
    pub fn of<'a>(recordings: impl IntoIterator<Item = &'a Recording>) -> Explanation {
        let mut explanation = Explanation::default();
        for recording in recordings {
            explanation.add(|behaviour| {
                let comparison = recording.compare(behaviour.policy());
                (comparison.compared, comparison.differences.len())
            });
        }
        explanation
    }

    /// Takes in what was found for each behaviour: how many IDs were compared, and how many of them
    /// are others.
    pub fn add(&mut self, count: impl Fn(Behaviour) -> (usize, usize)) {
        for evidence in &mut self.evidence {
            let (compared, different) = count(evidence.behaviour);
            evidence.compared += compared;
            evidence.different += different;
        }
    }

    /// All that explain it, in the order of [`Behaviour::all`]: they give nearly all of the IDs,
    /// and few others more than the one that explains most. The kernel's is one of them, or unknown
    /// here.
    pub fn candidates(&self) -> Vec<Behaviour> {
        let most = self.evidence.iter().map(|evidence| evidence.compared).max().unwrap_or(0);
        let is_possible = |evidence: &&Evidence| {
            evidence.compared >= FEWEST.max(most / 2)
                && evidence.different * EXPLAINED_OF <= evidence.compared
        };
        let possible: Vec<&Evidence> = self.evidence.iter().filter(is_possible).collect();
        let fewest = possible.iter().map(|evidence| evidence.different).min().unwrap_or(0);
        let as_good = possible.iter().filter(|evidence| evidence.different <= 4 * fewest + CHANCE);
        as_good.map(|evidence| evidence.behaviour).collect()
    }

    /// The one that explains it; `None` if several do, or none.
    pub fn decided(&self) -> Option<Behaviour> {
        match self.candidates()[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// `cache-local 0 of 40, owned 12 of 40`: how many IDs are others.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nr, Evidence { behaviour, compared, different }) in self.evidence.iter().enumerate() {
            let comma = if nr == 0 { "" } else { ", " };
            write!(f, "{comma}{behaviour} {different} of {compared}")?;
        }
        Ok(())
    }
}
