//! Common mechanism of Linux 6.4 to 6.18: a slot per CPU, with the time of its last use. A scan
//! clears slots that were not used recently.
//!
//! The generations differ in the choice of an ID for an empty slot, and in the condition for a
//! moving thread to take its ID along. Each implements [`Generation`].
//!
//! In the kernel, a remote agent marks a slot as lazy, checks if the process runs there, and
//! otherwise releases the slot by a second exchange. Here events are atomic, so a mark outlives its
//! event in one case only. The scan's pass over the weights does not check first, so it marks the
//! slot of a CPU that runs the process.

use super::bitmap::Bitmap;
use super::impossible::Impossible;
use super::policy::{Id, Overhead, Policy, Process, Thread, Work};
use super::threads::Threads;
use crate::time::{MS, Ns};
use crate::topology::Cpu;

/// Time after which an unused slot expires (R7), and minimum time between two scans.
const PERIOD: Ns = 100 * MS;

/// The ID that a CPU holds for the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Slot {
    /// None.
    #[default]
    Unset,
    /// The ID of any thread of the process that runs here.
    Valid(Id),
    /// An ID that the thread running here still uses, and that no other thread may begin to use.
    Lazy(Id),
}

impl Slot {
    fn id(self) -> Option<Id> {
        match self {
            Slot::Unset => None,
            Slot::Valid(id) | Slot::Lazy(id) => Some(id),
        }
    }
}

/// State of a CPU in the process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CpuSlot {
    /// The CPU's slot.
    pub(super) slot: Slot,
    /// Time of the last use.
    time: Ns,
    /// The ID that it held last (R1); used since Linux 6.13.
    pub(super) recent: Option<Id>,
}

/// State of a thread in the process.
#[derive(Debug, Default)]
struct ThreadNote {
    /// The ID that the thread uses while it runs.
    id: Option<Id>,
    /// The ID that it used last, unless a migration has invalidated it.
    last: Option<Id>,
    /// `true` if it has ended: it may still be on a CPU, but no longer counts for the process.
    exited: bool,
}

/// The IDs of the process, from which a generation allocates.
#[derive(Debug)]
pub(super) struct Ids {
    /// The IDs that are held.
    pub(super) taken: Bitmap,
    /// Number of IDs handed out so far (R4); Linux 6.14 lowers it.
    pub(super) max_nr_cid: u32,
}

/// The differences between the generations.
pub(super) trait Generation: Send {
    /// Takes an ID for a CPU whose slot is unset.
    fn allocate(ids: &mut Ids, process: &Process<'_>, recent: Option<Id>)
    -> Result<Id, Impossible>;

    /// Returns `true` if the destination of a migration needs no ID.
    fn is_settled(to: &CpuSlot) -> bool;

    /// Returns `true` if the process has so many threads that moving IDs would not make them
    /// denser.
    fn is_full(process: &Process<'_>, thread: Thread) -> bool;
}

/// The common mechanism, for one process.
pub(super) struct Slots<G> {
    cpus: Vec<CpuSlot>,
    ids: Ids,
    threads: Threads<ThreadNote>,
    /// Time of the next scan; `None` until the first event of the process.
    next_scan: Option<Ns>,
    /// Time after which an unused slot expires, and minimum time between two scans.
    period: Ns,
    work: Work,
    overhead: Overhead,
    generation: std::marker::PhantomData<G>,
}

impl<G: Generation> Slots<G> {
    pub(super) fn new(cpus: u32) -> Slots<G> {
        Slots {
            cpus: vec![CpuSlot::default(); cpus as usize],
            ids: Ids { taken: Bitmap::new(cpus), max_nr_cid: 0 },
            threads: Threads::default(),
            next_scan: None,
            period: PERIOD,
            work: Work::default(),
            overhead: Overhead::default(),
            generation: std::marker::PhantomData,
        }
    }

    /// Changes [`PERIOD`] by this factor.
    #[must_use]
    pub(super) fn with_period_times(self, factor: f64) -> Slots<G> {
        Slots { period: (PERIOD as f64 * factor) as Ns, ..self }
    }

    /// Returns `true` if a thread of the process that has not ended runs on `cpu`.
    fn runs(&self, process: &Process<'_>, cpu: usize) -> bool {
        process.running[cpu].is_some_and(|thread| !self.has_exited(thread))
    }

    fn has_exited(&self, thread: Thread) -> bool {
        self.threads.get(thread).is_some_and(|note| note.exited)
    }

    fn switch_out(&mut self, now: Ns, cpu: usize, thread: Thread) {
        self.threads.get_mut(thread).id = None;
        let ours = &mut self.cpus[cpu];
        ours.time = now;
        if let Slot::Lazy(id) = ours.slot {
            ours.slot = Slot::Unset;
            self.ids.taken.free(id);
        }
    }

    fn switch_in(
        &mut self,
        process: &Process<'_>,
        cpu: usize,
        thread: Thread,
    ) -> Result<Id, Impossible> {
        let id = self.get(process, cpu)?;
        let note = self.threads.get_mut(thread);
        (note.id, note.last) = (Some(id), Some(id));
        Ok(id)
    }

    fn get(&mut self, process: &Process<'_>, cpu: usize) -> Result<Id, Impossible> {
        self.next_scan.get_or_insert(process.now + self.period);
        let ours = &mut self.cpus[cpu];
        ours.time = process.now;
        match ours.slot {
            Slot::Valid(id) => return Ok(id),
            Slot::Lazy(id) => self.ids.taken.free(id),
            Slot::Unset => {}
        }
        let id = G::allocate(&mut self.ids, process, ours.recent)?;
        ours.slot = Slot::Valid(id);
        ours.recent = Some(id);
        self.work.slow_paths += 1;
        Ok(id)
    }

    /// Returns the ID that `thread` used last on `from`, if that CPU still has it and does not need
    /// it.
    fn left_behind(&mut self, process: &Process<'_>, thread: Thread, from: usize) -> Option<Id> {
        let last = self.threads.get_mut(thread).last?;
        if self.cpus[from].slot != Slot::Valid(last) {
            return None;
        }
        if self.runs(process, from) {
            self.threads.get_mut(thread).last = None;
            return None;
        }
        Some(last)
    }

    fn scan(&mut self, process: &Process<'_>) {
        self.work.scans += 1;
        self.overhead.scans += 1;
        for cpu in 0..self.cpus.len() {
            if self.runs(process, cpu) {
                self.cpus[cpu].time = process.now;
            } else if process.now.saturating_sub(self.cpus[cpu].time) >= self.period {
                self.remote_clear(process, cpu);
            }
        }
        let weight = self.ids.taken.weight();
        for cpu in 0..self.cpus.len() {
            if matches!(self.cpus[cpu].slot, Slot::Valid(id) if id >= weight) {
                self.remote_clear(process, cpu);
            }
        }
    }

    /// Takes the ID of a CPU back. A thread that uses it keeps it until it is switched away from.
    fn remote_clear(&mut self, process: &Process<'_>, cpu: usize) {
        let Slot::Valid(id) = self.cpus[cpu].slot else { return };
        if self.runs(process, cpu) {
            self.cpus[cpu].slot = Slot::Lazy(id);
        } else {
            self.cpus[cpu].slot = Slot::Unset;
            self.ids.taken.free(id);
        }
        self.work.expired += 1;
    }
}

impl<G: Generation> Policy for Slots<G> {
    fn switch(
        &mut self,
        process: &Process<'_>,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) -> Result<(), Impossible> {
        if let Some(prev) = prev.filter(|&prev| !self.has_exited(prev)) {
            self.switch_out(process.now, cpu as usize, prev);
        }
        // An ended thread that was preempted in its last steps is switched to again, and takes no
        // ID.
        if let Some(next) = next.filter(|&next| !self.has_exited(next)) {
            self.switch_in(process, cpu as usize, next)?;
        }
        Ok(())
    }

    fn migrate(&mut self, process: &Process<'_>, thread: Thread, from: Cpu, to: Cpu) {
        let (from, to) = (from as usize, to as usize);
        let settled = G::is_settled(&self.cpus[to]);
        if settled && G::is_full(process, thread) {
            return;
        }
        let Some(id) = self.left_behind(process, thread, from) else { return };
        self.work.steals += 1;
        self.cpus[from].slot = Slot::Unset;
        self.cpus[from].recent = None;
        if settled {
            self.ids.taken.free(id);
        } else {
            self.cpus[to] = CpuSlot { slot: Slot::Valid(id), time: process.now, recent: Some(id) };
        }
    }

    fn tick(&mut self, process: &Process<'_>, _: Cpu, thread: Thread) {
        if self.has_exited(thread) {
            return;
        }
        let due = *self.next_scan.get_or_insert(process.now + self.period);
        if process.now >= due {
            self.next_scan = Some(process.now + self.period);
            self.scan(process);
        }
    }

    fn exit(&mut self, _: &Process<'_>, thread: Thread, cpu: Cpu) {
        *self.threads.get_mut(thread) = ThreadNote { exited: true, ..ThreadNote::default() };
        let ours = &mut self.cpus[cpu as usize];
        if let Some(id) = std::mem::take(&mut ours.slot).id() {
            self.ids.taken.free(id);
        }
    }

    fn exec(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<(), Impossible> {
        self.cpus.fill(CpuSlot::default());
        self.ids.taken.clear();
        self.ids.max_nr_cid = 0;
        self.threads.clear();
        self.next_scan = None;
        self.switch_in(process, cpu as usize, thread).map(drop)
    }

    fn id(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<Id, Impossible> {
        match self.threads.get(thread).and_then(|note| note.id) {
            Some(id) => Ok(id),
            None => self.switch_in(process, cpu as usize, thread),
        }
    }

    fn work(&self) -> Work {
        self.work
    }

    fn take_overhead(&mut self) -> Overhead {
        std::mem::take(&mut self.overhead)
    }
}
