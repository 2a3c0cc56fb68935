//! The IDs that the running threads of a process have.

use super::violation::Breach;
use crate::policies::{Id, Overhead, Thread};
use crate::topology::Cpu;

/// The mark of a CPU whose thread has used no ID yet. No ID is as large: see [`expect_bound`].
const NONE: Id = Id::MAX;

/// The largest number of slow paths, scans or fences of all CPUs that one call may report.
const MAX_WORK: u32 = 1 << 16;

/// The IDs by CPU, and the same as a set of IDs. A thread has an ID from its first use of the ID
/// until the thread is switched away from, or until its CPU is fenced.
#[derive(Debug)]
pub(crate) struct Holders {
    by_cpu: Vec<Id>,
    taken: Vec<u64>,
}

impl Holders {
    /// Creates the state of a process that does not run, on a machine with this many CPUs.
    pub(crate) fn new(cpus: u32) -> Holders {
        Holders { by_cpu: vec![NONE; cpus as usize], taken: vec![0; cpus.div_ceil(64) as usize] }
    }

    /// Records that the thread on a CPU uses an ID. `running` has the process's running threads.
    ///
    /// # Errors
    ///
    /// Returns the broken rule if another running thread has the ID, or if this thread has another
    /// one.
    #[inline]
    pub(crate) fn use_id(
        &mut self,
        cpu: Cpu,
        id: Id,
        running: &[Option<Thread>],
    ) -> Result<(), Breach> {
        if self.by_cpu[cpu as usize] == id { Ok(()) } else { self.begin_use(cpu, id, running) }
    }

    fn begin_use(&mut self, cpu: Cpu, id: Id, running: &[Option<Thread>]) -> Result<(), Breach> {
        let before = self.by_cpu[cpu as usize];
        if before != NONE {
            return Err(Breach::Stable { id, before });
        }
        let (word, bit) = (id as usize / 64, 1 << (id % 64));
        if self.taken.len() <= word {
            self.taken.resize(word + 1, 0);
        }
        if self.taken[word] & bit != 0 {
            return Err(self.shared(id, running));
        }
        self.taken[word] |= bit;
        self.by_cpu[cpu as usize] = id;
        Ok(())
    }

    #[cold]
    fn shared(&self, id: Id, running: &[Option<Thread>]) -> Breach {
        let holds = |&(_, held): &(Cpu, &Id)| *held == id;
        let holder_cpu = (0..).zip(&self.by_cpu).find(holds).map_or(0, |(cpu, _)| cpu);
        let holder = running[holder_cpu as usize].unwrap_or(0);
        Breach::Unique { id, holder, holder_cpu }
    }

    /// Records that the thread on a CPU no longer has its ID.
    #[inline]
    pub(crate) fn release(&mut self, cpu: Cpu) {
        let id = std::mem::replace(&mut self.by_cpu[cpu as usize], NONE);
        if id != NONE {
            self.taken[id as usize / 64] &= !(1 << (id % 64));
        }
    }

    /// Records that no thread has an ID any more.
    pub(crate) fn release_all(&mut self) {
        self.by_cpu.fill(NONE);
        self.taken.fill(0);
    }

    /// Records the fences in the work that a policy reported for the thread on a CPU. The thread
    /// itself keeps its ID.
    pub(crate) fn fence(&mut self, by: Cpu, overhead: &Overhead) {
        let all = if overhead.fenced_all > 0 { 0..self.by_cpu.len() as Cpu } else { 0..0 };
        for cpu in overhead.fenced.into_iter().chain(all).filter(|&cpu| cpu != by) {
            self.release(cpu);
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
