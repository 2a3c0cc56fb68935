//! The table source: percid's own map from CPU to ID.
//!
//! # Protocol
//!
//! `table[cpu]` holds `ID + 1`, or 0 for UNSET. A critical section reads `cpu_id`, reads
//! `table[cpu_id]` and commits to that ID's memory. Only a thread that holds the lock stores to the
//! table:
//!
//! * **Giving** an ID that no thread holds: store it in the entry of a CPU whose entry is UNSET.
//!   The storing thread may run on another CPU by then: the thread that runs on the entry's CPU
//!   will use the ID.
//! * **Taking** an ID from a CPU: store UNSET, *fence that CPU*, and only then use the ID for
//!   anything.
//!
//! # Why no two threads use one ID at the same time
//!
//! 1. Entries that are not UNSET are distinct: [`Space`] grants an ID only if no CPU holds it, and
//!    an entry is stored only as `Space` decides, under the lock.
//! 2. Two threads that run sections at the same time run on different CPUs, so they read different
//!    entries; a thread that is preempted or moved between its read and its commit is aborted.
//! 3. A section on the CPU that loses its ID either read the entry before UNSET was stored: then it
//!    has committed or been aborted when the fence returns. Or it read the entry after that: then
//!    it found UNSET. The fence also orders the writes of the section before the reads of the new
//!    holder.
//!
//! # Why no thread waits
//!
//! A thread never waits for the lock: it tries once. A thread that does not get it updates the
//! object's shared slot by an atomic instruction, as does every thread when a fence or the memory
//! for an ID is refused. The holder of the lock has all signals blocked, so no handler of its own
//! thread can run while the table is locked. The holder makes a bounded number of system calls,
//! none of which waits for another thread of the process.
//!
//! # Fork
//!
//! The whole state is in memory that the kernel zeroes in the child (`MADV_WIPEONFORK`), however
//! the child was made. Zero is the initial state: the child has an empty table, a free lock, and
//! registers for the fence again. The objects' memory is a copy of the parent's, so a sum includes
//! the parent's counts.

use super::entry::Entry;
use super::fence;
use super::limits::KnownLimits;
use super::published::Published;
use super::seen::Seen;
use super::source_error::SourceError;
use super::table_stats::TableStats;
use super::try_lock::{TryLock, TryLockGuard};
use crate::arena;
use crate::critical::FAST_PATH;
use crate::sys::atomic::{AtomicPtr, AtomicU32};
use crate::sys::registration::Registration;
use crate::sys::topology::{self, Place};
use crate::sys::{MAX_CPUS, affinity, clock, membarrier, memory, rseq, signals, thread};
use percid_rules::assign::{self, Table as _};
use percid_rules::space::{
    Assignment, CpuState, Distance, Eviction, IdState, Limits, Request, Space, SpaceCounters,
};
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Number of unset entries in front of entry 0. Threads whose `cpu_id` is -1 (not registered) or -2
/// (registration failed) read these. There are more than two only to keep the alignment.
const LEADING_ENTRIES: usize = 16;

/// The state in front of the arrays. All zero at first and again in every child.
#[repr(C)]
#[derive(Debug)]
struct Header {
    lock: TryLock,
    /// Nonzero once this process has registered for the fence.
    registered: u32,
    counts: SpaceCounters,
    limits: KnownLimits,
    stats: TableStats,
}

/// The place of a CPU in the topology, cached because a lookup costs about 50 us; `place` is
/// initialised if `known` is not 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct KnownPlace {
    known: u32,
    place: MaybeUninit<Place>,
}

impl KnownPlace {
    fn get(self) -> Option<Place> {
        // SAFETY: `known` is set together with the place.
        (self.known != 0).then(|| unsafe { self.place.assume_init() })
    }
}

/// The addresses of the arrays, each of `cpus` elements, all in one mapping.
#[derive(Debug)]
struct Table {
    cpus: usize,
    /// The IDs ever installed, in this process or in an ancestor whose data it has.
    seen: Seen,
    entries: NonNull<Entry>,
    header: NonNull<Header>,
    states: NonNull<CpuState>,
    ids: NonNull<IdState>,
    places: NonNull<KnownPlace>,
}

/// The process's table, once it is prepared.
static TABLE: Published<Table> = Published { place: AtomicPtr::new(ptr::null_mut()) };

/// Returns the number of IDs that this source ever installed: sums visit these.
pub(crate) fn id_count() -> u32 {
    installed().map_or(0, |table| table.seen.end())
}

/// Prepares the source, including the registration for the fence.
pub(crate) fn prepare(registration: Registration) -> Result<(), SourceError> {
    if !registration.succeeded() {
        return Err(SourceError::NoRseq(registration));
    }
    fence::prepare()?;
    let table = installed().or_else(install).ok_or(SourceError::NoMemory)?;
    FAST_PATH.set_table(table.entries.as_ptr().cast());
    Ok(())
}

fn installed() -> Option<&'static Table> {
    TABLE.get()
}

/// Returns the address ranges of the table, once there is one.
pub(crate) fn memory() -> impl Iterator<Item = Range<usize>> {
    let of = |table: &'static Table| {
        let parts = [(NonNull::from(table).addr(), size_of::<Table>()), table.mapping()];
        parts.map(|(start, bytes)| start.get()..start.get() + bytes)
    };
    installed().into_iter().flat_map(of)
}

/// Maps and publishes the table. Two threads may do so at once; the second unmaps its own.
fn install() -> Option<&'static Table> {
    let table = Table::map(affinity::possible_count())?;
    // SAFETY: a published table is never unmapped, and an unpublished one was seen by no other
    // thread.
    unsafe {
        if !TABLE.publish(table) {
            Table::unmap(table);
        }
    }
    installed()
}

/// The offsets of the arrays in the mapping.
struct Layout {
    header: usize,
    states: usize,
    ids: usize,
    places: usize,
    bytes: usize,
}

impl Layout {
    fn of(cpus: usize) -> Layout {
        // An entry for every possible CPU number, because the sections do not check theirs. The
        // kernel's list of possible CPUs may be hidden or out of date (a container that was moved).
        // Entries that are never touched use no memory.
        let mut end = (LEADING_ENTRIES + MAX_CPUS) * size_of::<Entry>();
        let mut array = |bytes: usize| {
            // Each array starts on a line of its own.
            let start = end.next_multiple_of(64);
            end = start + bytes;
            start
        };
        let header = array(size_of::<Header>());
        let states = array(size_of::<CpuState>() * cpus);
        let ids = array(size_of::<IdState>() * cpus);
        let places = array(size_of::<KnownPlace>() * cpus);
        Layout { header, states, ids, places, bytes: end }
    }

    fn table(&self, cpus: usize, start: NonNull<u8>) -> Table {
        const { assert!(align_of::<Header>() <= 64 && align_of::<CpuState>() <= 64) };
        // SAFETY: every offset lies inside the mapping of `self.bytes` bytes.
        unsafe {
            Table {
                cpus,
                seen: Seen { end: AtomicU32::new(0) },
                entries: start.cast::<Entry>().add(LEADING_ENTRIES),
                header: start.add(self.header).cast(),
                states: start.add(self.states).cast(),
                ids: start.add(self.ids).cast(),
                places: start.add(self.places).cast(),
            }
        }
    }
}

/// Returns the ID of the CPU that runs the calling thread, as a hint: the thread may move at once.
pub(crate) fn current() -> Option<u32> {
    let cpu = rseq::cpu_id(FAST_PATH.area())?;
    installed()?.entry(cpu)?.id()
}

/// Makes sure that the CPU which runs the calling thread has an ID. Returns `false` if it cannot
/// have one now: then the caller must use the shared slot. The thread may have moved when this
/// returns, so callers retry a bounded number of times.
#[cold]
pub(crate) fn ensure_id() -> bool {
    let Some(table) = installed() else {
        return false;
    };
    if rseq::cpu_id(FAST_PATH.area()).is_none() && !rseq::register_thread() {
        return false;
    }
    if current().is_some() {
        return true;
    }
    table.try_lock().is_some_and(|mut locked| locked.ensure_id())
}

/// Evicts IDs above the bound and IDs not renewed for 100 ms, with one fence (R7 to R9). Returns
/// their number, or 0 if another thread holds the lock.
pub(crate) fn compact_ids() -> u32 {
    installed().and_then(Table::try_lock).map_or(0, |mut locked| locked.compact(clock::now_ms()))
}

/// Returns the table's counts so far; `None` if another thread holds the lock.
pub(crate) fn table_stats() -> Option<TableStats> {
    Some(installed()?.try_lock()?.stats_now())
}

impl Table {
    /// Maps a table for `cpus` CPUs; `None` if there is no memory.
    fn map(cpus: usize) -> Option<NonNull<Table>> {
        let layout = Layout::of(cpus);
        let start = memory::map_wiped_on_fork(layout.bytes)?;
        // The `Table` itself must survive a fork, so it cannot lie in the wiped mapping. A slow
        // path in a signal handler must not allocate, so it gets a separate mapping.
        let Some(place) = memory::map(size_of::<Table>()) else {
            // SAFETY: no other thread has seen the mapping.
            unsafe { memory::unmap(start, layout.bytes) };
            return None;
        };
        let table = place.cast::<Table>();
        // SAFETY: fresh memory of sufficient size and page alignment.
        unsafe { table.write(layout.table(cpus, start)) };
        Some(table)
    }

    /// Unmaps both mappings.
    ///
    /// # Safety
    ///
    /// The table comes from [`map`](Table::map), and no thread uses it.
    unsafe fn unmap(table: NonNull<Table>) {
        // SAFETY: the caller passes a table from `map` that no thread uses, so both mappings exist.
        // The entries begin behind the leading ones.
        unsafe {
            let Table { cpus, entries, .. } = *table.as_ref();
            memory::unmap(entries.sub(LEADING_ENTRIES).cast(), Layout::of(cpus).bytes);
            memory::unmap(table.cast(), size_of::<Table>());
        }
    }

    /// Returns the start and the size in bytes of the mapping of the entries and all arrays behind
    /// them.
    fn mapping(&self) -> (NonZeroUsize, usize) {
        // SAFETY: the entries begin behind the leading ones.
        (unsafe { self.entries.sub(LEADING_ENTRIES) }.addr(), Layout::of(self.cpus).bytes)
    }

    fn entry(&self, cpu: u32) -> Option<&Entry> {
        // SAFETY: the array has more than `cpus` entries and stays mapped.
        ((cpu as usize) < self.cpus).then(|| unsafe { self.entries.add(cpu as usize).as_ref() })
    }

    /// Takes the lock; `None` if another thread has it. Signals are blocked from before it is taken
    /// until after it is released.
    fn try_lock(&'static self) -> Option<Locked> {
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
pub(crate) struct Locked {
    table: &'static Table,
    _held: TryLockGuard<'static>,
    _signals: signals::Blocked,
}

impl Locked {
    /// Finds an ID for the CPU that runs this thread and installs it.
    fn ensure_id(&mut self) -> bool {
        let Some(cpu) = rseq::cpu_id(FAST_PATH.area()) else {
            return false;
        };
        let now = clock::now_ms();
        self.ensure_id_of(cpu, now, |locked| locked.limits().now(cpu, now))
    }

    fn ensure_id_of(
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
    fn compact(&mut self, now: u64) -> u32 {
        if !self.ready_to_fence() {
            return 0;
        }
        let limits = self.limits().ask(now);
        let eviction = self.space().compact(limits);
        self.evict(eviction, now)
    }

    fn stats_now(&mut self) -> TableStats {
        let so_far = *self.table_stats();
        let space = self.space();
        TableStats { ids_held: space.in_use() as u32, id_bound: space.max_nr_cid(), ..so_far }
    }

    /// Registers this process for the fence if it has not done so: a child of `fork` registers
    /// again.
    fn ready_to_fence(&mut self) -> bool {
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
    fn install(&mut self, cpu: u32, id: u32, thread: u64, now: u64) -> bool {
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

    /// Frees the IDs of all CPUs for which `condemned` returns `true`, with one fence for all of
    /// them. Each CPU remembers its ID as recent. Returns the number of IDs.
    fn evict_where(&mut self, condemned: impl Fn(&Space<'_>, u32) -> bool) -> u32 {
        let table = self.table;
        let cpus = || 0..table.cpus as u32;
        let mut count = 0;
        for cpu in cpus().filter(|&cpu| condemned(&self.space(), cpu)) {
            if let Some(entry) = table.entry(cpu) {
                entry.unset();
                count += 1;
            }
        }
        if count == 0 {
            return 0;
        }
        let fenced = fence::all().is_ok();
        for cpu in cpus() {
            let mut space = self.space();
            let (Some(entry), Some(id)) = (table.entry(cpu), space.held(cpu)) else {
                continue;
            };
            if entry.id().is_some() {
                continue;
            }
            if fenced {
                space.detach(cpu, false);
                space.free(id);
            } else {
                entry.set(id, &table.seen);
            }
        }
        if !fenced {
            return 0;
        }
        self.table_stats().evicted += u64::from(count);
        self.table_stats().eviction_fences += 1;
        count
    }
}

impl assign::Table for Locked {
    fn space(&mut self) -> Space<'_> {
        let table = self.table;
        // SAFETY: the lock gives exclusive access to everything in the mapping except the lock and
        // the entries. The three borrows are disjoint and end before the lock is released. All zero
        // is a valid value of each type.
        unsafe {
            Space::new(
                &mut (*table.header.as_ptr()).counts,
                std::slice::from_raw_parts_mut(table.states.as_ptr(), table.cpus),
                std::slice::from_raw_parts_mut(table.ids.as_ptr(), table.cpus),
            )
        }
    }

    fn select(&mut self, request: Request, limits: Limits) -> Assignment {
        let places = Places(self.table);
        self.space().select(request, limits, |a, b| places.distance(a, b))
    }

    fn steal(&mut self, cpu: u32) -> Option<u32> {
        let (entry, id) = (self.table.entry(cpu)?, self.space().held(cpu)?);
        entry.unset();
        if fence::cpu(cpu).is_err() {
            // No other CPU can have been given the ID meanwhile, so it may come back.
            entry.set(id, &self.table.seen);
            return None;
        }
        self.table_stats().stolen += 1;
        self.space().detach(cpu, true)
    }

    fn evict(&mut self, eviction: Eviction, now: u64) -> u32 {
        self.evict_where(|space, cpu| space.is_evicted(cpu, eviction, now))
    }
}

/// The places of the CPUs in the topology, each looked up at its first use. Must be used under the
/// lock.
struct Places(&'static Table);

impl Places {
    /// Returns the distance of CPU `b` from CPU `a`.
    fn distance(&self, a: u32, b: u32) -> Distance {
        let (a, b) = (self.get(a), self.get(b));
        let same = |a: Option<u32>, b: Option<u32>| a.is_some() && a == b;
        match () {
            () if same(a.core, b.core) => Distance::SameCore,
            () if same(a.l3, b.l3) => Distance::SameL3,
            () if same(a.node, b.node) => Distance::SameNode,
            () => Distance::Far,
        }
    }

    fn get(&self, cpu: u32) -> Place {
        // SAFETY: the array has an element for every CPU of the space, the creator of this value
        // holds the lock, and no other reference to the element is alive.
        let known = unsafe { &mut *self.0.places.add(cpu as usize).as_ptr() };
        known.get().unwrap_or_else(|| {
            let place = topology::place(cpu);
            *known = KnownPlace { known: 1, place: MaybeUninit::new(place) };
            place
        })
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

/// Operations on the table that only the proofs use.
#[cfg(any(test, feature = "testing"))]
#[allow(dead_code, reason = "the tests need a part without the feature")]
pub(crate) mod hooks {
    use super::*;

    /// Takes the ID of `cpu` like a steal, and leaves it in transit.
    pub(crate) fn steal(cpu: u32) -> Option<u32> {
        let table = installed()?;
        // Checked first without the lock, which a stealing thread would otherwise hold most of the
        // time.
        table.entry(cpu)?.id()?;
        let mut locked = table.try_lock()?;
        locked.space().held(cpu)?;
        if locked.ready_to_fence() { locked.steal(cpu) } else { None }
    }

    /// Evicts the ID of `cpu` like compaction, and keeps it from being reused at once.
    pub(crate) fn evict(cpu: u32) -> Option<u32> {
        let table = installed()?;
        table.entry(cpu)?.id()?;
        let mut locked = table.try_lock()?;
        let id = locked.space().held(cpu)?;
        let evicted = locked.ready_to_fence() && locked.evict_where(|_, other| other == cpu) == 1;
        evicted.then(|| locked.space().reserve(id))?;
        Some(id)
    }

    /// Frees the ID of `cpu` and gives it another one, which no CPU holds.
    #[cfg(test)]
    pub(crate) fn give(cpu: u32, id: u32) -> bool {
        let Some(mut locked) = installed().and_then(Table::try_lock) else { return false };
        if let Some(held) = locked.steal(cpu) {
            locked.space().free(held);
        }
        locked.install(cpu, id, thread::token() as u64, clock::now_ms())
    }

    /// Fences one CPU, registering for that first.
    pub(crate) fn fence(cpu: u32) -> bool {
        membarrier::register().and_then(|()| membarrier::fence_cpu(cpu)).is_ok()
    }

    /// Ends the transit of a stolen ID: frees it, or gives it to `cpu` if that has none. Returns
    /// `false` if the lock was taken: try again.
    pub(crate) fn put_back(id: u32, cpu: Option<u32>) -> bool {
        let Some(mut locked) = installed().and_then(Table::try_lock) else {
            return false;
        };
        match cpu.filter(|&cpu| locked.space().held(cpu).is_none()) {
            Some(cpu) => {
                locked.install(cpu, id, thread::token() as u64, clock::now_ms());
            }
            None => locked.space().free(id),
        }
        true
    }

    /// Returns the number of IDs held or in transit; `None` if the lock was taken.
    pub(crate) fn ids_in_use() -> Option<usize> {
        Some(installed()?.try_lock()?.space().in_use())
    }

    /// Holds the lock while `body` runs; `None` if it was taken.
    pub(crate) fn while_locked<T>(body: impl FnOnce() -> T) -> Option<T> {
        let _locked = installed()?.try_lock()?;
        Some(body())
    }
}

/// Evicts the IDs of all CPUs, for tests. Returns `false` if another thread holds the lock.
#[cfg(all(test, not(percid_portable)))]
pub(crate) fn forget_all() -> bool {
    let all = |space: &Space<'_>, cpu| space.held(cpu).is_some();
    installed().and_then(Table::try_lock).map(|mut locked| locked.evict_where(all)).is_some()
}

#[cfg(all(test, not(miri)))]
#[path = "table_tests.rs"]
mod tests;
