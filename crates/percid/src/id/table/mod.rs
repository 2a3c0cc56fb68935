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

#[cfg(any(test, feature = "testing"))]
#[allow(dead_code, reason = "the tests need a part without the feature")]
pub(crate) mod hooks;
mod layout;
mod locked;
mod places;

use std::ops::Range;
use std::ptr::{self, NonNull};

use super::fence;
use super::published::Published;
use super::source_error::SourceError;
use super::table_stats::TableStats;
use crate::critical::FAST_PATH;
use crate::sys::atomic::AtomicPtr;
use crate::sys::registration::Registration;
use crate::sys::{affinity, clock, rseq};
use layout::Table;

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

/// Returns the ID of the CPU that runs the calling thread, as a hint: the thread may move at once.
#[inline]
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

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::sys::steps;

    #[test]
    fn a_table_is_not_replaced() {
        let (first, second) = (install().expect("memory"), install().expect("memory"));
        assert!(std::ptr::eq(first, second) && std::ptr::eq(first, installed().expect("a table")));
    }

    #[test]
    fn without_rseq_there_is_no_table() {
        let refused = Registration::Refused(libc::ENOSYS);
        assert_eq!(prepare(refused), Err(SourceError::NoRseq(refused)));
        let _watching = steps::watch(|_| Some(Err(libc::EPERM)));
        let refused = Err(SourceError::MembarrierRefused(libc::EPERM));
        assert_eq!(prepare(Registration::Libc), refused);
    }
}
