//! Users of memory in a phase, and the cost of a round by the location of the pages.

use std::ops::Range;

use super::pages::Node;
use super::system::System;
use super::workload::{MIB, Pattern, Phase, Use, Workload};
use crate::random::Random;

/// The uses of a phase, with the location of their memory.
#[derive(Debug)]
pub(super) struct Locality {
    nodes: usize,
    uses: Vec<InUse>,
}

#[derive(Debug)]
struct InUse {
    memory: usize,
    /// Bytes in a row that belong to one worker; `None` if each worker uses all bytes.
    slice: Option<u64>,
    workers: Range<u32>,
    shift: u32,
    /// Bytes by owner and node; of all workers together if each uses all bytes.
    bytes: Vec<u64>,
}

/// The worker that touches an armed page next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Toucher {
    pub(super) thread: u32,
    /// Number of workers that may come first.
    pub(super) among: u32,
}

impl Locality {
    /// Creates the uses of a phase; their memory is on no node yet.
    pub(super) fn new(workload: &Workload, phase: &Phase, nodes: usize) -> Locality {
        let uses = phase.uses.iter().map(|one| InUse::new(workload, one, nodes)).collect();
        Locality { nodes, uses }
    }

    /// Records that bytes of a memory are on this node. `memory` is the index of the memory.
    pub(super) fn add(&mut self, memory: usize, bytes: &Range<u64>, node: Node) {
        self.each(memory, bytes, node, |count, bytes| *count += bytes);
    }

    /// Records that bytes of a memory are no longer on this node.
    pub(super) fn remove(&mut self, memory: usize, bytes: &Range<u64>, node: Node) {
        self.each(memory, bytes, node, |count, bytes| *count -= bytes);
    }

    fn each(&mut self, memory: usize, bytes: &Range<u64>, node: Node, change: fn(&mut u64, u64)) {
        let nodes = self.nodes;
        for one in self.uses.iter_mut().filter(|one| one.memory == memory) {
            let mut at = bytes.start;
            while at < bytes.end {
                let stop = one.slice.map_or(bytes.end, |slice| (at / slice + 1) * slice);
                let stop = stop.min(bytes.end);
                let owner = one.owner(at).unwrap_or(0) as usize;
                change(&mut one.bytes[owner * nodes + usize::from(node)], stop - at);
                at = stop;
            }
        }
    }

    /// Returns the only worker that uses a byte, if there is exactly one.
    pub(super) fn owner(&self, memory: usize, at: u64) -> Option<u32> {
        let mut uses = self.uses.iter().filter(|one| one.memory == memory);
        let one = uses.next().filter(|_| uses.next().is_none())?;
        one.owner(at).map(|owner| one.workers.start + owner)
    }

    /// Returns the worker that touches a part of a memory next; `None` if no worker does in this
    /// phase.
    pub(super) fn toucher(
        &self,
        memory: usize,
        bytes: &Range<u64>,
        random: &mut Random,
    ) -> Option<Toucher> {
        let uses: Vec<&InUse> = self.uses.iter().filter(|one| one.memory == memory).collect();
        let one = match uses.len() {
            0 => return None,
            1 => uses[0],
            several => uses[random.below(several as u64) as usize],
        };
        let at = bytes.start + random.below(bytes.end - bytes.start);
        let (owner, among) = match one.owner(at) {
            Some(owner) => (owner, 1),
            None => (random.below(one.len().into()) as u32, one.len()),
        };
        Some(Toucher { thread: one.workers.start + owner, among })
    }

    /// Returns the cost of a round of all workers, in bytes of local memory. `node_of` returns the
    /// node of a thread.
    pub(super) fn cost(&self, system: &System, node_of: impl Fn(u32) -> Node) -> f64 {
        self.sum(|from, to| system.cost(from, to), node_of)
    }

    /// Returns the share of a round's bytes that are on the worker's node.
    pub(super) fn local_share(&self, node_of: impl Fn(u32) -> Node) -> f64 {
        let local = self.sum(|from, to| f64::from(u8::from(from == to)), &node_of);
        local / self.sum(|_, _| 1.0, &node_of)
    }

    fn sum(&self, weight: impl Fn(usize, usize) -> f64, node_of: impl Fn(u32) -> Node) -> f64 {
        let mut sum = 0.0;
        for one in &self.uses {
            for (at, worker) in one.workers.clone().enumerate() {
                let owner = if one.slice.is_some() { at } else { 0 };
                let from = usize::from(node_of(worker));
                let bytes = &one.bytes[owner * self.nodes..(owner + 1) * self.nodes];
                let cost = |(to, &bytes): (usize, &u64)| bytes as f64 * weight(from, to);
                sum += bytes.iter().enumerate().map(cost).sum::<f64>();
            }
        }
        sum
    }
}

impl InUse {
    fn new(workload: &Workload, one: &Use, nodes: usize) -> InUse {
        let memory = workload.index_of(&one.memory);
        let workers = workload.workers_of(one);
        let count = workers.len() as u64;
        let slice = match one.pattern {
            Pattern::All => None,
            Pattern::Parts => Some((workload.memory[memory].mib * MIB).div_ceil(count)),
            Pattern::Slices => one.slice_kib.map(|kib| kib * 1024),
        };
        let owners = if slice.is_some() { workers.len() } else { 1 };
        let shift = one.shift % count as u32;
        InUse { memory, slice, workers, shift, bytes: vec![0; owners * nodes] }
    }

    fn len(&self) -> u32 {
        self.workers.len() as u32
    }

    /// Returns the owner of a byte, counted from the first worker of the use; `None` if all workers
    /// share it.
    fn owner(&self, at: u64) -> Option<u32> {
        let slice = self.slice?;
        let unshifted = (at / slice % u64::from(self.len())) as u32;
        Some((unshifted + self.len() - self.shift) % self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locality(preset: &str, phase: usize) -> Locality {
        let workload = Workload::preset(preset).expect("a preset");
        Locality::new(&workload, &workload.phases[phase], 2)
    }

    #[test]
    fn parts_belong_to_the_workers_in_order_and_shifts_turn_them() {
        let part = 2048 * MIB / 32;
        let of = |phase, at| locality("phases", phase).owner(0, at);
        assert_eq!([0, part, 31 * part].map(|at| of(0, at)), [1, 2, 32].map(Some));
        assert_eq!([0, part, 2 * part].map(|at| of(1, at)), [32, 1, 2].map(Some));
        assert_eq!(of(0, 31 * part + part - 1), Some(32));
        assert_eq!(locality("phases", 2).owner(1, 0), None, "all have the table");
    }

    #[test]
    fn a_huge_page_of_slices_has_four_owners() {
        let mut slices = locality("slices", 0);
        slices.add(0, &(0..2 * MIB), 1);
        // The first two workers are on node 0, the others on node 1.
        assert_eq!(slices.local_share(|worker| Node::from(worker > 2)), 0.5);
        slices.remove(0, &(0..MIB), 1);
        assert_eq!(slices.local_share(|worker| Node::from(worker > 2)), 1.0);
    }

    #[test]
    fn what_all_use_costs_each_of_them() {
        let mut all = locality("numa01", 0);
        all.add(0, &(0..10 * MIB), 0);
        let system = System::uniform("two", 2, 80, 1.0, 3.0);
        let cost = all.cost(&system, |worker| Node::from(worker > 30));
        assert_eq!(cost, (10 * MIB) as f64 * (30.0 + 3.0 * 10.0));
        let mut random = Random::new(1);
        let touched = all.toucher(0, &(0..MIB), &mut random).expect("somebody");
        assert_eq!(touched.among, 40);
        assert!((1..=40).contains(&touched.thread));
    }

    #[test]
    fn nobody_touches_what_a_phase_leaves_alone() {
        let mut random = Random::new(1);
        assert_eq!(locality("phases", 0).toucher(1, &(0..MIB), &mut random), None);
    }
}
