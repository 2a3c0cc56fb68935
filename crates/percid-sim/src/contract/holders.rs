//! The IDs that the running threads of a process have.

use super::violation::Breach;
use crate::policies::{Id, Overhead, Thread};
use crate::topology::Cpu;

/// The mark of a CPU whose thread has used no ID yet. No ID is as large: see [`expect_bound`].
const NONE: Id = Id::MAX;

/// The largest number of slow paths, scans or fences of all CPUs that one call may report.
const MAX_WORK: u32 = 1 << 16;

/// The IDs of a process that its running threads have. Takes memory from the first ID on.
#[derive(Debug, Default)]
pub(crate) struct TakenIds {
    words: Vec<u64>,
}

impl TakenIds {
    /// Adds an ID. Returns `false` if it is in the set already.
    fn insert(&mut self, id: Id) -> bool {
        let (word, bit) = (id as usize / 64, 1 << (id % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    fn remove(&mut self, id: Id) {
        self.words[id as usize / 64] &= !(1 << (id % 64));
    }
}

/// The ID that the running thread of each CPU has, of whatever process. A thread has an ID from its
/// first use of the ID until the thread is switched away from, or until its CPU is fenced.
#[derive(Debug)]
pub(crate) struct Holders {
    by_cpu: Vec<Id>,
}

impl Holders {
    /// Creates the state of a machine that runs nothing.
    pub(crate) fn new(cpus: u32) -> Holders {
        Holders { by_cpu: vec![NONE; cpus as usize] }
    }

    /// Records that the thread on a CPU uses an ID. `taken` and `running` are those of its process.
    ///
    /// # Errors
    ///
    /// Returns the broken rule if another running thread has the ID, or if this thread has another
    /// one.
    #[inline]
    pub(crate) fn use_id(
        &mut self,
        taken: &mut TakenIds,
        running: &[Option<Thread>],
        cpu: Cpu,
        id: Id,
    ) -> Result<(), Breach> {
        let held = &mut self.by_cpu[cpu as usize];
        match *held {
            before if before == id => Ok(()),
            NONE if taken.insert(id) => {
                *held = id;
                Ok(())
            }
            before => Err(self.breach(running, id, before)),
        }
    }

    #[cold]
    fn breach(&self, running: &[Option<Thread>], id: Id, before: Id) -> Breach {
        if before != NONE {
            return Breach::Stable { id, before };
        }
        let holds = |&(cpu, &held): &(Cpu, &Id)| held == id && running[cpu as usize].is_some();
        let holder_cpu = (0..).zip(&self.by_cpu).find(holds).map_or(0, |(cpu, _)| cpu);
        let holder = running[holder_cpu as usize].unwrap_or(0);
        Breach::Unique { id, holder, holder_cpu }
    }

    /// Records that the thread on a CPU, whose process has these IDs, no longer has its ID.
    #[inline]
    pub(crate) fn release(&mut self, taken: &mut TakenIds, cpu: Cpu) {
        let id = std::mem::replace(&mut self.by_cpu[cpu as usize], NONE);
        if id != NONE {
            taken.remove(id);
        }
    }

    /// Records the fences in the work that a policy reported for the thread on a CPU. The thread
    /// itself keeps its ID.
    pub(crate) fn fence(
        &mut self,
        taken: &mut TakenIds,
        running: &[Option<Thread>],
        by: Cpu,
        overhead: &Overhead,
    ) {
        let all = if overhead.fenced_all > 0 { 0..self.by_cpu.len() as Cpu } else { 0..0 };
        let fenced = overhead.fenced.into_iter().chain(all);
        for cpu in fenced.filter(|&cpu| cpu != by && running[cpu as usize].is_some()) {
            self.release(taken, cpu);
        }
    }
}

/// Returns the exclusive upper bound of the IDs of a process. `most_threads` is the largest number
/// of threads that it has had at a time.
#[inline]
pub(crate) fn id_bound(cpus: u32, most_threads: u32) -> u32 {
    cpus.max(most_threads)
}

/// Checks an ID against its bound.
#[inline]
pub(crate) fn expect_bound(id: Id, bound: u32) -> Result<(), Breach> {
    if id < bound { Ok(()) } else { Err(Breach::Bounded { id, bound }) }
}

/// Checks the work that a policy reported on a machine with this many CPUs.
pub(crate) fn expect_work(overhead: &Overhead, cpus: u32) -> Result<(), Breach> {
    let Overhead { slow_paths, fenced, fenced_all, scans } = *overhead;
    if let Some(cpu) = fenced.filter(|&cpu| cpu >= cpus) {
        let reported = format!("a fence of CPU {cpu}; expected a CPU below {cpus}");
        return Err(Breach::Work { reported });
    }
    let most = slow_paths.max(fenced_all).max(scans);
    if most > MAX_WORK {
        let reported = format!(
            "{slow_paths} slow paths, {fenced_all} fences of all CPUs and {scans} scans at once; \
             expected at most {MAX_WORK} of each"
        );
        return Err(Breach::Work { reported });
    }
    Ok(())
}
