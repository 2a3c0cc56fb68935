//! Changes of the table under its lock: assignments, steals and evictions.

use percid_rules::assign::{self, Table as _};
use percid_rules::space::{Distance, Limits, Request, Space};

use super::layout::Table;
use super::places::Places;
use crate::arena;
use crate::critical::FAST_PATH;
use crate::id::fence;
use crate::id::limits::KnownLimits;
use crate::id::table_stats::TableStats;
use crate::id::try_lock::TryLockGuard;
use crate::sys::{clock, membarrier, rseq, signals, thread};

impl Table {
    /// Takes the lock; `None` if another thread has it. Signals are blocked from before it is taken
    /// until after it is released.
    pub(super) fn try_lock(&'static self) -> Option<Locked> {
        let signals = signals::block_all();
        // SAFETY: the header is mapped forever, and `lock` is only ever accessed through shared
        // references.
        let lock = unsafe { &(*self.header.as_ptr()).lock };
        Some(Locked { table: self, _held: lock.try_lock()?, _signals: signals })
    }
}

/// The permission to change the table. Fields are dropped in this order: the lock, then the
/// signals.
#[derive(Debug)]
pub(super) struct Locked {
    table: &'static Table,
    _held: TryLockGuard<'static>,
    _signals: signals::Blocked,
}

impl Locked {
    /// Finds an ID for the CPU that runs this thread and installs it.
    pub(super) fn ensure_id(&mut self) -> bool {
        let Some(cpu) = rseq::cpu_id(FAST_PATH.area()) else {
            return false;
        };
        let now = clock::now_ms();
        self.ensure_id_of(cpu, now, |locked| locked.limits().now(cpu, now))
    }

    pub(super) fn ensure_id_of(
        &mut self,
        cpu: u32,
        now: u64,
        limits: impl FnOnce(&mut Locked) -> Limits,
    ) -> bool {
        let Some(entry) = self.table.entry(cpu) else {
            return false;
        };
        if entry.id().is_some() {
            return true;
        }
        if !self.ready_to_fence() {
            return false;
        }
        let limits = limits(self);
        let request = Request { cpu, thread: thread::token() as u64, previous_cpu: previous_cpu() };
        match assign::obtain(self, request, limits, now).id {
            Some(id) => self.install(cpu, id, request.thread, now),
            None => false,
        }
    }

    /// Evicts IDs like the free function `compact_ids`, at the time `now`.
    pub(super) fn compact(&mut self, now: u64) -> u32 {
        if !self.ready_to_fence() {
            return 0;
        }
        let limits = self.limits().ask(now);
        let eviction = self.space().compact(limits);
        assign::evict(self, |space, cpu| space.is_evicted(cpu, eviction, now))
    }

    pub(super) fn stats_now(&mut self) -> TableStats {
        let so_far = *self.table_stats();
        let space = self.space();
        TableStats { ids_held: space.in_use() as u32, id_bound: space.max_nr_cid(), ..so_far }
    }

    /// Registers this process for the fence if it has not done so: a child of `fork` registers
    /// again.
    pub(super) fn ready_to_fence(&mut self) -> bool {
        // SAFETY: the lock gives exclusive access to this field.
        let registered = unsafe { &mut (*self.table.header.as_ptr()).registered };
        if *registered == 0 && membarrier::register().is_ok() {
            *registered = 1;
        }
        *registered != 0
    }

    fn table_stats(&mut self) -> &mut TableStats {
        // SAFETY: the lock gives exclusive access to this field, for as long as `self` is borrowed.
        unsafe { &mut (*self.table.header.as_ptr()).stats }
    }

    fn limits(&mut self) -> &mut KnownLimits {
        // SAFETY: the lock gives exclusive access to this field, for as long as `self` is borrowed.
        unsafe { &mut (*self.table.header.as_ptr()).limits }
    }

    /// Installs `id` on `cpu`, or withdraws it if its memory cannot be opened.
    pub(super) fn install(&mut self, cpu: u32, id: u32, thread: u64, now: u64) -> bool {
        self.space().assign(cpu, id, thread, now);
        if !arena::open_id(id) {
            // The entry was never stored, so no fence is needed.
            self.space().revoke(cpu);
            return false;
        }
        self.table.seen.add(id);
        self.table_stats().assigned += 1;
        if let Some(entry) = self.table.entry(cpu) {
            entry.set(id, &self.table.seen);
        }
        remember(cpu);
        true
    }
}

impl assign::Table for Locked {
    fn parts(&mut self) -> (Space<'_>, impl Fn(u32, u32) -> Distance) {
        let table = self.table;
        // SAFETY: the lock gives exclusive access to everything in the mapping except the lock and
        // the entries. The three borrows are disjoint and end before the lock is released. All zero
        // is a valid value of each type.
        let space = unsafe {
            Space::new(
                &mut (*table.header.as_ptr()).counts,
                std::slice::from_raw_parts_mut(table.states.as_ptr(), table.cpus),
                std::slice::from_raw_parts_mut(table.ids.as_ptr(), table.cpus),
            )
        };
        let places = Places(table.places);
        (space, move |a, b| places.distance(a, b))
    }

    fn unset(&mut self, cpu: u32) {
        if let Some(entry) = self.table.entry(cpu) {
            entry.unset();
        }
    }

    fn restore(&mut self, cpu: u32, id: u32) {
        if let Some(entry) = self.table.entry(cpu) {
            entry.set(id, &self.table.seen);
        }
    }

    fn fence(&mut self, cpu: u32) -> bool {
        let fenced = fence::cpu(cpu).is_ok();
        self.table_stats().stolen += u64::from(fenced);
        fenced
    }

    fn fence_all(&mut self, evicted: u32) -> bool {
        let fenced = fence::all().is_ok();
        if fenced {
            self.table_stats().evicted += u64::from(evicted);
            self.table_stats().eviction_fences += 1;
        }
        fenced
    }
}

/// Returns the CPU on which this thread last took an ID.
fn previous_cpu() -> Option<u32> {
    // SAFETY: the block is the thread's own, and signals are blocked.
    unsafe { (*thread::own()).previous_cpu }.checked_sub(1)
}

fn remember(cpu: u32) {
    // SAFETY: the block is the thread's own, and signals are blocked.
    unsafe { (*thread::own()).previous_cpu = cpu + 1 };
}

#[cfg(all(test, not(miri)))]
#[path = "tests.rs"]
mod tests;
