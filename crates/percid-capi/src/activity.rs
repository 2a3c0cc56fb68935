//! Statistics of percid's table, and the memory of an ID.

use std::ffi::{c_int, c_void};

use crate::barrier::guard;
use crate::sized;

/// How often the slow path of percid's table ran in this process, and what it took from whom. It
/// may grow.
///
/// A program whose threads wander sees by two of these, a second apart, what its IDs cost: a slow
/// path takes 1 us or less, a steal from a CPU that runs the process some 10 us. A child of fork()
/// starts at zero.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    /// IDs given to CPUs that had none: the slow paths that succeeded.
    pub given: u64,
    /// Of these, the ones taken from another CPU, with a fence of that CPU.
    pub stolen: u64,
    /// IDs taken back because they had expired or lay above the bound.
    pub evicted: u64,
    /// Fences of all CPUs for that.
    pub evictions: u64,
    /// IDs held by CPUs at the moment.
    pub held: u32,
    /// New IDs are below this at the moment.
    pub max_nr_cid: u32,
}

/// Addresses.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The first one.
    pub start: *mut c_void,
    /// How many bytes.
    pub bytes: usize,
}

impl Range {
    pub(crate) fn of(range: std::ops::Range<usize>) -> Range {
        Range { start: std::ptr::without_provenance_mut(range.start), bytes: range.len() }
    }
}

/// Stores in `activity`, of `size` bytes, what percid's table has done so far.
///
/// Returns 0; -EINVAL for NULL or no bytes; -EAGAIN if PERCID_SOURCE_TABLE was not used so far, or
/// another thread is busy with the table at this moment. Async-signal-safe; costs some loads for
/// every possible CPU.
///
/// # Safety
///
/// `activity` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_activity_read(activity: *mut Activity, size: usize) -> c_int {
    if activity.is_null() || size == 0 {
        return -libc::EINVAL;
    }
    guard(-libc::EFAULT, || {
        let Some(now) = percid::id::activity() else { return -libc::EAGAIN };
        let percid::id::Activity { given, stolen, evicted, evictions, held, max_nr_cid, .. } = now;
        let now = Activity { given, stolen, evicted, evictions, held, max_nr_cid };
        // SAFETY: the caller guarantees memory of this size, or NULL.
        unsafe { sized::store(activity, size, &now) }
    })
}

/// The memory that holds an ID's copies of all structures, for mbind() for instance: writes the
/// first `capacity` of its ranges to `ranges` and returns how many there are. With `capacity` 0
/// nothing is written and `ranges` may be NULL.
///
/// With more structures there are more ranges, and the last ones grow; none goes away. An ID that
/// no CPU has had yet has the addresses, but nothing behind them. Async-signal-safe; costs a call
/// and some loads.
///
/// # Safety
///
/// `ranges` is [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_id_memory(id: u32, ranges: *mut Range, capacity: usize) -> usize {
    // SAFETY: the caller guarantees memory of this size, or NULL.
    guard(0, || unsafe {
        crate::list::write(percid::id::memory_of(id).map(Range::of), ranges, capacity)
    })
}
