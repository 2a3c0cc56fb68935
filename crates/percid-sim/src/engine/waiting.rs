//! The threads that wait for CPUs, and the CPUs by the length of their queues.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::index::ThreadIndex;
use crate::cpu_set::{CpuSet, Part};
use crate::topology::Cpu;

/// The queue length from which on all CPUs share one set; each shorter length has its own set.
const LONG: usize = 32;

/// A queue of threads for each CPU, and the CPUs by the length of their queues. So a search for the
/// longest or the shortest queue does not check each CPU.
#[derive(Debug)]
pub(super) struct Waiting {
    queues: Vec<VecDeque<ThreadIndex>>,
    /// CPUs with at least one waiting thread.
    crowded: CpuSet,
    /// The CPUs with this number of waiting threads; the last set has those with `LONG` and more.
    of_length: Vec<CpuSet>,
    /// Number of CPUs in each of these sets.
    counts: Vec<u32>,
    /// Index of the last non-empty set.
    longest: usize,
    /// Number of threads in all queues together.
    threads: u32,
}

impl Waiting {
    /// Creates empty queues.
    pub(super) fn new(cpus: u32) -> Waiting {
        Waiting {
            queues: (0..cpus).map(|_| VecDeque::new()).collect(),
            crowded: CpuSet::empty(cpus),
            of_length: vec![CpuSet::from_cpus(cpus, 0..cpus)],
            counts: vec![cpus],
            longest: 0,
            threads: 0,
        }
    }

    /// Returns `true` if any thread waits.
    pub(super) fn any(&self) -> bool {
        self.threads > 0
    }

    /// Returns the threads that wait for a CPU, in queue order.
    pub(super) fn queue(&self, cpu: Cpu) -> &VecDeque<ThreadIndex> {
        &self.queues[cpu as usize]
    }

    /// Returns the CPUs with at least one waiting thread.
    pub(super) fn crowded(&self) -> &CpuSet {
        &self.crowded
    }

    /// Appends a thread to the queue of a CPU.
    pub(super) fn push(&mut self, cpu: Cpu, thread: ThreadIndex) {
        let queue = &mut self.queues[cpu as usize];
        queue.push_back(thread);
        let length = queue.len();
        self.threads += 1;
        if length == 1 {
            self.crowded.insert(cpu);
        }
        self.resort(cpu, length - 1, length);
    }

    /// Removes a thread from the queue of a CPU, if it is there.
    pub(super) fn remove(&mut self, cpu: Cpu, thread: ThreadIndex) {
        let queue = &mut self.queues[cpu as usize];
        let Some(place) = queue.iter().position(|&other| other == thread) else { return };
        queue.remove(place);
        let length = queue.len();
        self.threads -= 1;
        if length == 0 {
            self.crowded.remove(cpu);
        }
        self.resort(cpu, length + 1, length);
    }

    /// Moves a CPU to the set of its new queue length, which differs by one from the old.
    fn resort(&mut self, cpu: Cpu, from: usize, to: usize) {
        let (from, to) = (from.min(LONG), to.min(LONG));
        if from == to {
            return;
        }
        if to == self.of_length.len() {
            self.of_length.push(CpuSet::empty(self.queues.len() as u32));
            self.counts.push(0);
        }
        self.of_length[from].remove(cpu);
        self.counts[from] -= 1;
        self.of_length[to].insert(cpu);
        self.counts[to] += 1;
        if to > self.longest || (from == self.longest && self.counts[from] == 0) {
            self.longest = to;
        }
    }

    /// Returns the first of these CPUs with the shortest queue.
    pub(super) fn shortest(&self, among: &CpuSet) -> Option<Cpu> {
        let short = self.of_length.iter().take(LONG);
        let found = short.filter_map(|cpus| cpus.first_in_both(among)).next();
        found.or_else(|| among.iter().min_by_key(|&cpu| self.queue(cpu).len()))
    }

    /// Returns the first of these CPUs with the longest queue, if that has at least `least`
    /// threads.
    pub(super) fn longest(&self, among: &Part, least: usize) -> Option<Cpu> {
        let length = |cpu: Cpu| self.queue(cpu).len();
        if self.longest == LONG {
            let long = among.common(&self.of_length[LONG]);
            let most = long.max_by_key(|&cpu| (length(cpu), Reverse(cpu)));
            if most.is_some() {
                return most.filter(|&cpu| length(cpu) >= least);
            }
        }
        let lengths = (least..=self.longest.min(LONG - 1)).rev();
        lengths.filter_map(|length| among.first_in(&self.of_length[length])).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Returns the same as `Waiting::longest`, by checking each CPU.
    fn naive_longest(waiting: &Waiting, among: &CpuSet, least: usize) -> Option<Cpu> {
        let length = |cpu: Cpu| waiting.queue(cpu).len();
        let crowded = among.iter().filter(|&cpu| length(cpu) > 0);
        let most = crowded.max_by_key(|&cpu| (length(cpu), Reverse(cpu)));
        most.filter(|&cpu| length(cpu) >= least)
    }

    fn naive_shortest(waiting: &Waiting, among: &CpuSet) -> Option<Cpu> {
        among.iter().min_by_key(|&cpu| waiting.queue(cpu).len())
    }

    #[test]
    fn the_longest_and_the_shortest_queues_are_those_that_a_look_at_each_finds() {
        let cpus = 150;
        let mut found_long = 0;
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut waiting = Waiting::new(cpus);
            let mut next = 0;
            for step in 0..4000 {
                // Some CPUs have queues that are longer than `LONG`.
                let cpu = random.below(if step % 3 == 0 { 4 } else { u64::from(cpus) }) as Cpu;
                if random.below(5) < 3 {
                    waiting.push(cpu, ThreadIndex::new(next));
                    next += 1;
                } else if let Some(&thread) = waiting.queue(cpu).back() {
                    waiting.remove(cpu, thread);
                }
                let first = random.below(u64::from(cpus)) as Cpu;
                let among = CpuSet::from_cpus(cpus, first..(first + 40).min(cpus));
                let least = 1 + random.below(2 * LONG as u64) as usize;
                let longest = waiting.longest(&Part::from_set(&among), least);
                assert_eq!(longest, naive_longest(&waiting, &among, least), "{seed} {step}");
                found_long += u32::from(longest.is_some_and(|cpu| waiting.queue(cpu).len() > LONG));
                assert_eq!(waiting.shortest(&among), naive_shortest(&waiting, &among));
                assert_eq!(waiting.any(), waiting.queues.iter().any(|queue| !queue.is_empty()));
            }
        }
        assert!(found_long > 100, "queues beyond the sets were among them: {found_long}");
    }
}
