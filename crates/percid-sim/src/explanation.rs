//! Finds the generation of the kernel's IDs that explains the recorded IDs, whatever release the
//! kernel reports.
//!
//! The same schedule is replayed under the policy of every generation, and under that of a kernel
//! without the feature, whose IDs are the CPU numbers. A policy that gives the recorded IDs
//! explains them. Often several do: a process with one thread has the same IDs under most of them.
//! So the answer may be undecided between several.

use std::fmt;

use percid_rules::Generation;

use crate::conformance::Recording;
use crate::policies::{PolicySpec, find, of_generation};

/// A source of IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// A generation of the kernel's concurrency IDs.
    Of(Generation),
    /// A kernel that was built without concurrency IDs: the IDs are the CPU numbers.
    CpuNumbers,
}

impl Behaviour {
    /// Returns all behaviours, the generations first.
    pub fn all() -> impl Iterator<Item = Behaviour> {
        Generation::ALL.into_iter().map(Behaviour::Of).chain([Behaviour::CpuNumbers])
    }

    /// Returns the policy that behaves like this.
    pub fn policy(self) -> &'static PolicySpec {
        match self {
            Behaviour::Of(generation) => of_generation(generation),
            Behaviour::CpuNumbers => find("per-cpu").expect("a policy of that name"),
        }
    }
}

/// Writes the behaviour in one word.
impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Behaviour::Of(generation) => generation.fmt(f),
            Behaviour::CpuNumbers => f.pad("cpu-numbers"),
        }
    }
}

/// The agreement between one behaviour and the recorded IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// The behaviour.
    pub behaviour: Behaviour,
    /// Number of compared IDs.
    pub compared: usize,
    /// Number of compared IDs that differ.
    pub different: usize,
}

/// Minimum number of compared IDs for an explanation.
const MIN_COMPARED_IDS: usize = 10;

/// Reciprocal of the share of IDs that may differ: a trace may sometimes show the order of two CPUs
/// wrongly.
const EXPLAINED_OF: usize = 50;

/// Number of differing IDs that may be chance, in addition to four times those of the best
/// behaviour.
const CHANCE: usize = 2;

/// The evidence for every behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Evidence in the order of [`Behaviour::all`].
    pub evidence: Vec<Evidence>,
}

impl Default for Explanation {
    fn default() -> Explanation {
        let none = |behaviour| Evidence { behaviour, compared: 0, different: 0 };
        Explanation { evidence: Behaviour::all().map(none).collect() }
    }
}

impl Explanation {
    /// Creates the explanation of all of some recordings. Recordings that were not read from text
    /// must have been checked.
    pub fn from_recordings<'a>(recordings: impl IntoIterator<Item = &'a Recording>) -> Explanation {
        let mut explanation = Explanation::default();
        for recording in recordings {
            explanation.add(|behaviour| {
                let comparison = recording.compare(behaviour.policy());
                (comparison.compared, comparison.differences.len())
            });
        }
        explanation
    }

    /// Adds the results for each behaviour: the number of compared IDs, and the number of IDs that
    /// differ.
    pub fn add(&mut self, count: impl Fn(Behaviour) -> (usize, usize)) {
        for evidence in &mut self.evidence {
            let (compared, different) = count(evidence.behaviour);
            evidence.compared += compared;
            evidence.different += different;
        }
    }

    /// Returns all behaviours that explain the IDs, in the order of [`Behaviour::all`]. They give
    /// nearly all of the IDs, and their differences are few compared with the best behaviour's. The
    /// kernel's behaviour is one of them, or is unknown here.
    pub fn candidates(&self) -> Vec<Behaviour> {
        let most = self.evidence.iter().map(|evidence| evidence.compared).max().unwrap_or(0);
        let is_possible = |evidence: &&Evidence| {
            evidence.compared >= MIN_COMPARED_IDS.max(most / 2)
                && evidence.different * EXPLAINED_OF <= evidence.compared
        };
        let possible: Vec<&Evidence> = self.evidence.iter().filter(is_possible).collect();
        let fewest = possible.iter().map(|evidence| evidence.different).min().unwrap_or(0);
        let as_good = possible.iter().filter(|evidence| evidence.different <= 4 * fewest + CHANCE);
        as_good.map(|evidence| evidence.behaviour).collect()
    }

    /// Returns the only candidate; `None` if there are several or none.
    pub fn decided(&self) -> Option<Behaviour> {
        match self.candidates()[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// Writes the number of differing IDs per behaviour: `cache-local 0 of 40, owned 12 of 40`.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nr, Evidence { behaviour, compared, different }) in self.evidence.iter().enumerate() {
            let comma = if nr == 0 { "" } else { ", " };
            write!(f, "{comma}{behaviour} {different} of {compared}")?;
        }
        Ok(())
    }
}
