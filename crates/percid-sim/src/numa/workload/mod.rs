//! Workloads of memory, as files describe them: which threads use which memory, in which order.

mod check;
mod layout;

use serde::{Deserialize, Serialize};

use crate::file::{self, Error};

pub(super) use layout::{MAIN, PAGE, Part, Used, regions};

/// A mebibyte.
pub(super) const MIB: u64 = 1 << 20;

/// A workload as its file describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The name, for tables.
    pub name: String,
    /// What it stands for.
    pub about: String,
    /// Processes, each with memory and threads of its own. Their home nodes are the nodes of the
    /// machine in turn.
    pub processes: u32,
    /// Workers of each process, which count from 1. Its main thread waits for them.
    pub threads: u32,
    /// What happens before the first phase.
    pub preparation: Preparation,
    /// The memory of a process.
    pub memory: Vec<Memory>,
    /// What the workers do, one phase after the other.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
    /// The file, to name lines of it.
    #[serde(skip)]
    text: String,
}

/// The time in which every worker touches all memory.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// How long it takes.
    pub seconds: f64,
    /// Whether the memory policy of the workers is bound to a node meanwhile, so that their scans
    /// leave regions out.
    pub bound: bool,
    /// Where the pages are afterwards.
    pub place: Placement,
}

/// Where pages are at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On the home node of the process.
    Home,
    /// On all nodes in turn.
    Interleaved,
    /// On the node of the worker that the first phase gives a page to; where all workers use it, or
    /// none, on all nodes in turn.
    Owner,
}

/// Memory of a process: one region, in huge pages where its alignment allows that.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// What phases call it.
    pub name: String,
    /// Its size in MiB.
    pub mib: u64,
}

/// A phase: the workers go over their memory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// How often each goes over all that it uses.
    pub rounds: u32,
    /// Who uses what.
    #[serde(rename = "use")]
    pub uses: Vec<Use>,
}

/// A memory that some workers use in a phase.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// The memory's name.
    pub memory: String,
    /// How the workers share it.
    pub pattern: Pattern,
    /// The size of a slice in kiB, for [`Pattern::Slices`].
    pub slice_kib: Option<u64>,
    /// By how many workers parts and slices are shifted: a worker has what without it the one so
    /// many further has.
    #[serde(default)]
    pub shift: u32,
    /// The first and the last worker that use it; all if nothing is said.
    pub workers: Option<(u32, u32)>,
}

/// How workers share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each uses all of it.
    All,
    /// Each has one part, in the order of the workers.
    Parts,
    /// It is dealt out in slices, to the workers in turn.
    Slices,
}

/// The workloads that come with the simulator: a short name and the file's text.
const PRESETS: [(&str, &str); 5] = [
    ("numa01-threadlocal", include_str!("../../../workloads/numa/numa01-threadlocal.toml")),
    ("numa01", include_str!("../../../workloads/numa/numa01.toml")),
    ("slices", include_str!("../../../workloads/numa/slices.toml")),
    ("phases", include_str!("../../../workloads/numa/phases.toml")),
    ("archive", include_str!("../../../workloads/numa/archive.toml")),
];

impl Workload {
    /// The names of the workloads that come with the simulator.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// The workload with this name among them.
    pub fn preset(name: &str) -> Option<Workload> {
        let text = Workload::preset_text(name)?;
        Some(Workload::parse(text).expect("the tests read all presets"))
    }

    /// The file of a workload that comes with the simulator: a start for one's own.
    pub fn preset_text(name: &str) -> Option<&'static str> {
        PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Text that is no TOML, fields that are missing or unknown, values that make no sense; with
    /// the line.
    pub fn parse(text: &str) -> Result<Workload, Error> {
        let mut workload: Workload = file::parse(text)?;
        text.clone_into(&mut workload.text);
        workload.check()?;
        Ok(workload)
    }

    /// Bytes of all memory of a process.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.iter().map(|memory| memory.mib * MIB).sum()
    }

    /// Bytes that all workers of a process go over in all phases.
    pub(super) fn traffic(&self) -> f64 {
        let phase = |phase: &Phase| f64::from(phase.rounds) * self.round_bytes(phase);
        self.phases.iter().map(phase).sum()
    }

    /// Bytes that all workers of a process go over in a round of a phase.
    pub(super) fn round_bytes(&self, phase: &Phase) -> f64 {
        let bytes = |one: &Use| {
            let times = if one.pattern == Pattern::All { self.workers_of(one).len() } else { 1 };
            (self.memory[self.index_of(&one.memory)].mib * MIB) as f64 * times as f64
        };
        phase.uses.iter().map(bytes).sum()
    }

    /// The workers of a use, as numbers of threads.
    pub(super) fn workers_of(&self, one: &Use) -> std::ops::Range<u32> {
        let (first, last) = one.workers.unwrap_or((1, self.threads));
        first..last + 1
    }

    /// The place of a memory in the list. All names of a file that was read are there.
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
