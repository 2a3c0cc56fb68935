//! NUMA workloads and their files: the memory that threads use, phase by phase.

mod check;
pub(super) mod layout;

use serde::{Deserialize, Serialize};

use crate::file::{self, Error};

/// A mebibyte in bytes.
pub(super) const MIB: u64 = 1 << 20;

/// A workload as its file describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The name, for tables.
    pub name: String,
    /// Description of the situation that it models.
    pub about: String,
    /// Number of processes, each with its own memory and threads. Their home nodes are the nodes of
    /// the machine in turn.
    pub processes: u32,
    /// Number of workers of each process, which count from 1. The main thread waits for them.
    pub threads: u32,
    /// The preparation before the first phase.
    pub preparation: Preparation,
    /// The memory of a process.
    pub memory: Vec<Memory>,
    /// The phases of the workers' work, in order.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
    /// Text of the file, for line numbers in errors.
    #[serde(skip)]
    text: String,
}

/// The time in which every worker touches all memory.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// Length of the preparation in seconds.
    pub seconds: f64,
    /// `true` if the memory policy of the workers is bound to a node during the preparation, so
    /// that their scans skip regions.
    pub bound: bool,
    /// Placement of the pages after the preparation.
    pub place: Placement,
}

/// The initial placement of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On the home node of the process.
    Home,
    /// On all nodes in turn.
    Interleaved,
    /// On the node of the worker that uses the page in the first phase. If all workers or none use
    /// it, on all nodes in turn.
    Owner,
}

/// Memory of a process: one region, in huge pages if its alignment allows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Name that phases use.
    pub name: String,
    /// Size in MiB.
    pub mib: u64,
}

/// A phase: the workers go over their memory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Number of times that each worker goes over all its memory.
    pub rounds: u32,
    /// The memory uses of workers.
    #[serde(rename = "use")]
    pub uses: Vec<Use>,
}

/// A memory that some workers use in a phase.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// The memory's name.
    pub memory: String,
    /// Division of the memory among the workers.
    pub pattern: Pattern,
    /// Size of a slice in KiB, for [`Pattern::Slices`].
    pub slice_kib: Option<u64>,
    /// Number of workers by which parts and slices are shifted. Each worker gets the memory that
    /// the worker this many positions later would have without the shift.
    #[serde(default)]
    pub shift: u32,
    /// The first and the last worker that use it; `None` for all workers.
    pub workers: Option<(u32, u32)>,
}

/// The division of memory among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each worker uses all of it.
    All,
    /// Each worker has one part, in the order of the workers.
    Parts,
    /// The memory is dealt to the workers in slices, in turn.
    Slices,
}

/// The workloads that come with the simulator: short name and text of the file.
const PRESETS: [(&str, &str); 5] = [
    ("numa01-threadlocal", include_str!("../../../workloads/numa/numa01-threadlocal.toml")),
    ("numa01", include_str!("../../../workloads/numa/numa01.toml")),
    ("slices", include_str!("../../../workloads/numa/slices.toml")),
    ("phases", include_str!("../../../workloads/numa/phases.toml")),
    ("archive", include_str!("../../../workloads/numa/archive.toml")),
];

impl Workload {
    /// Returns the names of the workloads that come with the simulator.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// Returns the workload with this name, if it comes with the simulator.
    pub fn preset(name: &str) -> Option<Workload> {
        let text = Workload::preset_text(name)?;
        Some(Workload::parse(text).expect("the tests read all presets"))
    }

    /// Returns the file of a workload that comes with the simulator, as a start for a user's own
    /// file.
    pub fn preset_text(name: &str) -> Option<&'static str> {
        PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Reads a workload from the text of a file.
    ///
    /// # Errors
    ///
    /// Returns an error with the line if the text is not TOML, fields are missing or unknown, or
    /// values are inconsistent.
    pub fn parse(text: &str) -> Result<Workload, Error> {
        let mut workload: Workload = file::parse(text)?;
        text.clone_into(&mut workload.text);
        workload.check()?;
        Ok(workload)
    }

    /// Returns the number of bytes of all memory of a process.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.iter().map(|memory| memory.mib * MIB).sum()
    }

    /// Returns the number of bytes that all workers of a process go over in all phases.
    pub(super) fn traffic(&self) -> f64 {
        let phase = |phase: &Phase| f64::from(phase.rounds) * self.round_bytes(phase);
        self.phases.iter().map(phase).sum()
    }

    /// Returns the number of bytes that all workers of a process go over in a round of a phase.
    pub(super) fn round_bytes(&self, phase: &Phase) -> f64 {
        let bytes = |one: &Use| {
            let times = if one.pattern == Pattern::All { self.workers_of(one).len() } else { 1 };
            (self.memory[self.index_of(&one.memory)].mib * MIB) as f64 * times as f64
        };
        phase.uses.iter().map(bytes).sum()
    }

    /// Returns the workers of a use, as thread numbers.
    pub(super) fn workers_of(&self, one: &Use) -> std::ops::Range<u32> {
        let (first, last) = one.workers.unwrap_or((1, self.threads));
        first..last + 1
    }

    /// Returns the index of a memory. [`Workload::parse`] has checked that every used name exists.
    pub(super) fn index_of(&self, name: &str) -> usize {
        self.memory.iter().position(|memory| memory.name == name).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_presets_can_be_read_and_have_their_names() {
        for name in Workload::presets() {
            assert_eq!(Workload::preset(name).expect("a preset").name, name);
        }
        assert!(Workload::preset("none").is_none());
    }

    #[test]
    fn both_benchmarks_write_as_much() {
        let traffic = |name| Workload::preset(name).expect("a preset").traffic();
        assert_eq!(traffic("numa01"), traffic("numa01-threadlocal"));
    }
}
