//! The memory of the table: entries, states of CPUs and IDs, and places, in one mapping.

use std::num::NonZeroUsize;
use std::ptr::NonNull;

use percid_rules::space::{CpuState, IdState, SpaceCounters};

use super::places::KnownPlace;
use crate::id::entry::Entry;
use crate::id::limits::KnownLimits;
use crate::id::seen::Seen;
use crate::id::table_stats::TableStats;
use crate::id::try_lock::TryLock;
use crate::sys::atomic::AtomicU32;
use crate::sys::{MAX_CPUS, memory};

/// Number of unset entries in front of entry 0. Threads whose `cpu_id` is -1 (not registered) or -2
/// (registration failed) read these. There are more than two only to keep the alignment.
const LEADING_ENTRIES: usize = 16;

/// The state in front of the arrays. All zero at first and again in every child.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    pub(super) lock: TryLock,
    /// Nonzero once this process has registered for the fence.
    pub(super) registered: u32,
    pub(super) counts: SpaceCounters,
    pub(super) limits: KnownLimits,
    pub(super) stats: TableStats,
}

/// The addresses of the arrays, each of `cpus` elements, all in one mapping.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) cpus: usize,
    /// The IDs ever installed, in this process or in an ancestor whose data it has.
    pub(super) seen: Seen,
    pub(super) entries: NonNull<Entry>,
    pub(super) header: NonNull<Header>,
    pub(super) states: NonNull<CpuState>,
    pub(super) ids: NonNull<IdState>,
    pub(super) places: NonNull<KnownPlace>,
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

impl Table {
    /// Maps a table for `cpus` CPUs; `None` if there is no memory.
    pub(super) fn map(cpus: usize) -> Option<NonNull<Table>> {
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
    pub(super) unsafe fn unmap(table: NonNull<Table>) {
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
    pub(super) fn mapping(&self) -> (NonZeroUsize, usize) {
        // SAFETY: the entries begin behind the leading ones.
        (unsafe { self.entries.sub(LEADING_ENTRIES) }.addr(), Layout::of(self.cpus).bytes)
    }

    pub(super) fn entry(&self, cpu: u32) -> Option<&Entry> {
        // SAFETY: the array has more than `cpus` entries and stays mapped.
        ((cpu as usize) < self.cpus).then(|| unsafe { self.entries.add(cpu as usize).as_ref() })
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Sections read the entries of all numbers that the kernel may store in `cpu_id`, unchecked.
    #[test]
    fn every_number_of_a_cpu_has_an_entry() {
        const CPUS: usize = 16;
        let layout = Layout::of(CPUS);
        // SAFETY: the table is never unmapped.
        let table = unsafe { Table::map(CPUS).expect("memory").as_ref() };
        let start = table.header.as_ptr() as usize - layout.header;
        let entry = |cpu: isize| table.entries.as_ptr().wrapping_offset(cpu) as usize;
        assert!(entry(-2) >= start);
        assert!(entry(MAX_CPUS as isize) <= start + layout.header);
        // SAFETY: inside the mapping by the lines above.
        let unset = |cpu| unsafe { (*table.entries.as_ptr().wrapping_offset(cpu)).id().is_none() };
        assert!([-2, -1, MAX_CPUS as isize - 1].into_iter().all(unset));
        // The arrays do not overlap.
        let ends = [
            (layout.header + size_of::<Header>(), layout.states),
            (layout.states + size_of::<CpuState>() * CPUS, layout.ids),
            (layout.ids + size_of::<IdState>() * CPUS, layout.places),
            (layout.places + size_of::<KnownPlace>() * CPUS, layout.bytes),
        ];
        assert!(ends.iter().all(|&(end, next)| end <= next), "{ends:?}");
    }
}
