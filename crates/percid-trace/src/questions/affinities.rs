//! The CPUs on which threads may run, if a recording contains them.

use std::collections::{HashMap, HashSet};

use percid_sim::cpu_list;

use super::bound::bound;
use crate::event::{Cpu, Tid, What};
use crate::trace::Trace;

/// The number of a set of CPUs.
pub(super) type SetNumber = u32;

/// All CPUs.
pub(super) const ALL: SetNumber = 0;

/// Maximum number of sets that are distinguished: each costs work whenever a CPU begins to idle.
const SETS: usize = 64;

/// Sets of CPUs, and which of them each thread may use.
#[derive(Debug)]
pub(super) struct Affinities {
    /// CPU sets by number; each has an element for every CPU.
    sets: Vec<Vec<bool>>,
    /// The sets of each thread, with the time since which it had each; `None` if a set has no
    /// number.
    of: HashMap<Tid, Vec<(u64, Option<SetNumber>)>>,
    /// Threads that cannot go elsewhere whatever is done about it.
    bound_by_kernel: HashSet<Tid>,
}

impl Affinities {
    /// Reads the affinities in a trace. Times are nanoseconds since its first event.
    pub(super) fn from_trace(trace: &Trace) -> Affinities {
        let cpus = trace.largest_cpu().map_or(0, |cpu| cpu as usize + 1);
        let begin = trace.events.first().map_or(0, |event| event.time);
        let mut affinities = Affinities {
            sets: vec![vec![true; cpus]],
            of: HashMap::new(),
            bound_by_kernel: bound(trace),
        };
        for event in &trace.events {
            let What::Affinity { thread, cpus } = event.what else { continue };
            let set = affinities.number(trace.texts.get(cpus));
            let since = event.time.saturating_sub(begin);
            affinities.of.entry(thread).or_default().push((since, set));
            // It is the program's own wish, whatever the thread is called.
            affinities.bound_by_kernel.remove(&thread);
        }
        affinities
    }

    /// Returns `true` if the kernel binds the thread, so that nothing can be done about it.
    pub(super) fn is_bound_by_kernel(&self, thread: Tid) -> bool {
        self.bound_by_kernel.contains(&thread)
    }

    /// Returns the set that a thread may use; `None` if that is not known.
    pub(super) fn get(&self, thread: Tid, now: u64) -> Option<SetNumber> {
        let Some(told) = self.of.get(&thread) else { return Some(ALL) };
        // A recorded affinity also holds for the time before, unless another one was recorded for
        // that.
        let at = told.partition_point(|&(since, _)| since <= now).saturating_sub(1);
        told[at].1
    }

    /// Forgets the affinity of a thread that runs on a CPU outside it: changes that other threads
    /// make are not recorded.
    pub(super) fn see(&mut self, thread: Tid, cpu: Cpu, now: u64) {
        let Some(set) = self.get(thread, now).filter(|&set| set != ALL) else { return };
        if !self.contains(set, cpu) {
            self.of.remove(&thread);
        }
    }

    pub(super) fn contains(&self, set: SetNumber, cpu: Cpu) -> bool {
        self.sets[set as usize].get(cpu as usize).is_some_and(|&has| has)
    }

    pub(super) fn sets(&self) -> &[Vec<bool>] {
        &self.sets
    }

    /// Returns a set as a list, such as `0-3,8`.
    pub(super) fn list(&self, set: SetNumber) -> String {
        let set = &self.sets[set as usize];
        cpu_list::write((0..).zip(set).filter(|&(_, &has)| has).map(|(cpu, _)| cpu))
    }

    fn number(&mut self, list: &str) -> Option<SetNumber> {
        let ranges = cpu_list::parse(list)?;
        let cpus = self.sets[ALL as usize].len() as Cpu;
        let set: Vec<bool> =
            (0..cpus).map(|cpu| ranges.iter().any(|range| range.contains(&cpu))).collect();
        let known = self.sets.iter().position(|known| *known == set);
        if known.is_none() && self.sets.len() < SETS {
            self.sets.push(set);
            return Some(self.sets.len() as SetNumber - 1);
        }
        known.map(|number| number as SetNumber)
    }
}
