//! Statistics of percid's table, and the memory of an ID.

use std::ffi::{c_int, c_void};

use crate::barrier::guard;
use crate::sized;

/// Statistics of the slow path of percid's table in this process. The structure may grow.
///
/// The difference of two of these, taken a second apart, shows the cost of IDs for a program whose
/// threads move between CPUs: a slow path takes 1 us or less, a steal from a CPU that runs the
/// process about 10 us. A child of fork() starts at zero.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TableStats {
    /// IDs assigned to CPUs that had none: the slow paths that succeeded.
    pub assigned: u64,
    /// The assigned IDs that were stolen from another CPU, with a fence of that CPU.
    pub stolen: u64,
    /// IDs that were evicted because they had expired or were above the bound.
    pub evicted: u64,
    /// Fences of all CPUs for evictions.
    pub eviction_fences: u64,
    /// IDs currently held by CPUs.
    pub ids_held: u32,
    /// The current limit of IDs: new IDs are below it.
    pub id_bound: u32,
}

/// A range of addresses.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The first address.
    pub start: *mut c_void,
    /// Number of bytes.
    pub bytes: usize,
}

impl Range {
    pub(crate) fn from_range(range: std::ops::Range<usize>) -> Range {
        Range { start: std::ptr::without_provenance_mut(range.start), bytes: range.len() }
    }
}

/// Stores the statistics of percid's table in `stats`, of `size` bytes.
///
/// Returns 0; -EINVAL for NULL or no bytes; -EAGAIN if PERCID_SOURCE_TABLE has not been used, or
/// another thread is currently using the table. Async-signal-safe; costs a few loads for every
/// possible CPU.
///
/// # Safety
///
/// `stats` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_table_stats_read(stats: *mut TableStats, size: usize) -> c_int {
    if stats.is_null() || size == 0 {
        return -libc::EINVAL;
    }
    guard(-libc::EFAULT, || {
        let Some(now) = percid::id::table_stats() else { return -libc::EAGAIN };
        let percid::id::TableStats {
            assigned,
            stolen,
            evicted,
            eviction_fences,
            ids_held,
            id_bound,
            ..
        } = now;
        let now = TableStats { assigned, stolen, evicted, eviction_fences, ids_held, id_bound };
        // SAFETY: the caller guarantees memory of this size, or NULL.
        unsafe { sized::store(stats, size, &now) }
    })
}

/// Returns the number of memory ranges that hold an ID's parts of all structures, for mbind() for
/// instance, and writes the first `capacity` of them to `ranges`. With `capacity` 0 nothing is
/// written and `ranges` may be NULL.
///
/// With more structures there are more ranges, and the last ones grow; none is removed. An ID that
/// no CPU has had yet has the addresses, but no memory at them. Async-signal-safe; costs a call and
/// a few loads.
///
/// # Safety
///
/// `ranges` is [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_id_memory(id: u32, ranges: *mut Range, capacity: usize) -> usize {
    // SAFETY: the caller guarantees memory of this size, or NULL.
    guard(0, || unsafe {
        crate::list::write(percid::id::memory_of(id).map(Range::from_range), ranges, capacity)
    })
}
