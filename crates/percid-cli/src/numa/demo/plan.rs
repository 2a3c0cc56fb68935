//! Plan of a demonstration on this machine.

use std::time::Duration;

use percid_numa::{AccessMethod, Settings};

use crate::cli::{DemoArguments, RulesChoice};
use crate::numa::figures::mebibytes;
use crate::numa::nodes::{self, Node};
use crate::numa::pages::page_size;
use percid_command::exit::Failure;

/// Default of `--memory` if the free memory of the machine is unknown, and the maximum that is used
/// by default.
const MODEST: u64 = 64 << 20;
const MAX_DEFAULT_MEMORY: u64 = 1 << 30;

/// The default of `--pairs`: an even number, so that each kind of run comes first equally often.
/// For six pairs the interval is 1.05 standard deviations of a pair to either side; for four 1.6,
/// for twelve 0.64.
const PAIRS: usize = 6;
/// The default if only one node has memory, when more pairs could show nothing.
const PAIRS_OF_ONE_NODE: usize = 1;

/// The node and the CPUs of a thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadPlace {
    pub(super) node: u32,
    pub(super) cpus: Vec<u32>,
}

/// The runs to execute, with their settings.
#[derive(Debug)]
pub(super) struct Plan {
    /// The place of each thread.
    pub(super) places: Vec<ThreadPlace>,
    /// Bytes of each thread's slice: whole pages.
    pub(super) slice: usize,
    /// The nodes that have memory.
    pub(super) nodes: Vec<u32>,
    /// The node where all of the memory is first.
    pub(super) first_node: u32,
    pub(super) pairs: usize,
    /// Length of each run.
    pub(super) length: Duration,
    pub(super) settings: Settings,
    pub(super) rules: RulesChoice,
    pub(super) access: AccessMethod,
}

impl Plan {
    /// # Errors
    ///
    /// Fails if there is not that much memory.
    pub(super) fn asked(arguments: &DemoArguments, nodes: &[Node]) -> Result<Plan, Failure> {
        let places = places(arguments.threads);
        // A kernel without nodes counts as one node.
        let with_memory = match nodes::with_memory() {
            found if found.is_empty() => vec![0],
            found => found,
        };
        let first = nodes.iter().find(|node| node.node == with_memory[0]);
        let memory = memory(arguments.memory, first.and_then(|node| node.memory_free))?;
        let slice = memory as usize / places.len() / page_size() * page_size();
        if slice == 0 {
            let least = places.len() * page_size();
            return Err(Failure::Usage(format!(
                "--memory is too small for {} threads: expected {least} bytes at least",
                places.len()
            )));
        }
        let by_default = if with_memory.len() > 1 { PAIRS } else { PAIRS_OF_ONE_NODE };
        Ok(Plan {
            first_node: with_memory[0],
            pairs: arguments.pairs.map_or(by_default, |pairs| pairs as usize),
            nodes: with_memory,
            length: arguments.seconds,
            settings: settings(arguments.seconds, (slice * places.len()) as u64),
            rules: arguments.rules,
            access: arguments.access,
            places,
            slice,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.slice * self.places.len()
    }

    /// Returns `true` if several nodes have memory, so that there is something to balance.
    pub(super) fn has_nodes(&self) -> bool {
        self.nodes.len() > 1
    }
}

/// Returns the requested size if that much is free, or by default a part of what is free.
fn memory(asked: Option<u64>, free: Option<u64>) -> Result<u64, Failure> {
    // All of it is on the first node at the beginning; the kernel and other processes need some
    // too.
    let most = free.map_or(u64::MAX, |free| free / 4 * 3);
    match asked {
        Some(asked) if asked > most => Err(Failure::Usage(format!(
            "--memory is more than the first node has free: expected {} MiB at most",
            mebibytes(most)
        ))),
        Some(asked) => Ok(asked),
        None => Ok(free.map_or(MODEST, |free| (free / 8).clamp(1 << 20, MAX_DEFAULT_MEMORY))),
    }
}

/// Assigns the threads to the nodes in round-robin order.
fn places(threads: Option<u64>) -> Vec<ThreadPlace> {
    let mut nodes: Vec<ThreadPlace> = Vec::new();
    for cpu in percid::machine::read().cpus.iter().filter(|cpu| cpu.allowed) {
        let node = cpu.node.unwrap_or(0);
        match nodes.iter_mut().find(|place| place.node == node) {
            Some(place) => place.cpus.push(cpu.number),
            None => nodes.push(ThreadPlace { node, cpus: vec![cpu.number] }),
        }
    }
    nodes.sort_by_key(|place| place.node);
    let cpus: usize = nodes.iter().map(|place| place.cpus.len()).sum();
    let threads = threads.map_or(cpus.max(2), |threads| threads as usize);
    nodes.into_iter().cycle().take(threads).collect()
}

/// Returns settings in proportion to the length of a run of seconds. A region is old enough after a
/// fiftieth of the run, and is scanned in four pieces. All of it is scanned at the earliest every
/// twentieth and at the latest every half of the run.
fn settings(length: Duration, bytes: u64) -> Settings {
    Settings {
        scan_delay: length / 50,
        scan_size: (bytes / 4).next_multiple_of(2 << 20),
        period_min: length / 20,
        period_max: length / 2,
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_what_is_free() {
        assert_eq!(memory(None, Some(80 << 20)).ok(), Some(10 << 20));
        assert_eq!(memory(None, Some(80 << 30)).ok(), Some(1 << 30));
        assert_eq!(memory(None, None).ok(), Some(MODEST));
        assert_eq!(memory(Some(60), Some(80)).ok(), Some(60));
        assert!(memory(Some(61), Some(80)).is_err());
    }

    #[test]
    fn threads_have_places_and_settings_can_be_used() {
        let places = places(Some(7));
        assert_eq!(places.len(), 7);
        assert!(places.iter().all(|place| !place.cpus.is_empty()));
        for (tenths, bytes) in [(1, 1 << 20), (36_000, 1 << 40), (100, 1 << 30)] {
            assert_eq!(settings(Duration::from_millis(100 * tenths), bytes).check(), Ok(()));
        }
    }
}
