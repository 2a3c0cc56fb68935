//! Functions that concern the whole process: its selected source, and the calling thread's ID.

use std::ffi::{CStr, c_char, c_int};

use crate::barrier::guard;
use crate::sized;
use crate::source::Source;
use crate::text;

/// The reason why the process uses the source that percid_init() returns. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionReason {
    /// The environment variable PERCID_SOURCE requests it.
    Requested = 1,
    /// The table works here: the default.
    TableAvailable = 2,
    /// The table does not work here; percid_source_unavailable() returns the reason.
    TableUnavailable = 3,
    /// Another thread, or the code that this signal handler interrupted, is currently selecting the
    /// source.
    Selecting = 4,
    /// It is not known yet if the kernel aborts critical sections; a later use tries again.
    ProbeInconclusive = 5,
    /// A reason for which this version of the interface has no number.
    Other = 6,
}

impl SelectionReason {
    fn from_percid(reason: percid::id::SelectionReason) -> SelectionReason {
        use percid::id::SelectionReason as Reason;
        match reason {
            Reason::Requested => SelectionReason::Requested,
            Reason::TableAvailable => SelectionReason::TableAvailable,
            Reason::TableUnavailable(_) => SelectionReason::TableUnavailable,
            Reason::Selecting => SelectionReason::Selecting,
            Reason::ProbeInconclusive => SelectionReason::ProbeInconclusive,
            _ => SelectionReason::Other,
        }
    }
}

pub(crate) const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version contains no zero byte"),
    };

/// Returns the version of the library that the program runs with, such as "0.1.0". Never NULL.
///
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Selects the source of IDs for this process at the first call; later calls return the same.
///
/// Every operation that needs a source selects it, so programs need not call this. Calling it early
/// in main(), before threads are started, makes the registration for the kernel's fence cheap: 2 us
/// instead of 20 ms. The environment variable PERCID_SOURCE (kernel, table or atomic) overrides the
/// selection; if the requested source is not available, one line on standard error reports that. A
/// program with more rights than its caller (set-user-ID, file capabilities) ignores it.
///
/// While another thread (or the code that a signal handler interrupted) is selecting the source,
/// the result is PERCID_SOURCE_ATOMIC; objects that are used in that time lose nothing by it.
/// Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn percid_init() -> Source {
    guard(Source::Atomic, || Source::from_percid(percid::init().source))
}

/// Writes one line into `text` that explains why the process uses the source that percid_init()
/// returns.
///
/// Writes at most `size` bytes, the last of them a zero, and returns the length of the whole line
/// without the zero, as snprintf() does: a line that does not fit is truncated. With `size` 0
/// nothing is written and `text` may be NULL. 512 bytes are enough for every line of this version.
///
/// Async-signal-safe; costs a microsecond.
///
/// # Safety
///
/// `text` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_reason(text: *mut c_char, size: usize) -> usize {
    // SAFETY: the caller guarantees memory of this size, or NULL.
    guard(0, || unsafe { text::write(text, size, percid::init().reason) })
}

/// Returns the reason why the process uses the source that percid_init() returns.
///
/// Async-signal-safe; costs a call, the first time the cost of percid_init().
#[unsafe(no_mangle)]
pub extern "C" fn percid_selection_reason_read() -> SelectionReason {
    guard(SelectionReason::Other, || SelectionReason::from_percid(percid::init().reason))
}

/// Returns the ID of the calling thread, 0 or more, or -EAGAIN if it can have none at the moment.
///
/// The ID is a hint: the thread may be moved to another CPU before the caller uses the result, and
/// another thread may have the ID then. It is suitable for selecting among shards that are
/// protected otherwise. With PERCID_SOURCE_ATOMIC it is a recent CPU number.
///
/// Async-signal-safe; costs about 15 ns once the CPU has an ID.
#[unsafe(no_mangle)]
pub extern "C" fn percid_current_id() -> c_int {
    guard(-libc::EAGAIN, || {
        let id = percid::init().source.current_id();
        id.and_then(|id| c_int::try_from(id).ok()).unwrap_or(-libc::EAGAIN)
    })
}

/// The numbers of a thread, as the kernel keeps them in its rseq area: hints, since the thread may be
/// moved at any time. The structure may grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct KernelNumbers {
    /// The CPU that runs the thread (`cpu_id`).
    pub cpu: c_int,
    /// The NUMA node of that CPU (`node_id`); -1 before Linux 6.3.
    pub node: c_int,
    /// The concurrency ID (`mm_cid`); -1 before Linux 6.3, and in an area that is shared with another
    /// library. PERCID_SOURCE_KERNEL uses it, and tells when it cannot be trusted.
    pub mm_cid: c_int,
}

/// Stores the numbers of the calling thread in `numbers`, of `size` bytes.
///
/// Returns 0; -EINVAL for NULL or no bytes; -EAGAIN if the thread has no rseq area. Registers the
/// thread if percid does that for this process. Async-signal-safe; costs a few loads.
///
/// # Safety
///
/// `numbers` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_kernel_numbers_read(
    numbers: *mut KernelNumbers,
    size: usize,
) -> c_int {
    if numbers.is_null() || size == 0 {
        return -libc::EINVAL;
    }
    guard(-libc::EFAULT, || {
        let Some(now) = percid::id::kernel_numbers() else { return -libc::EAGAIN };
        let number = |number: Option<u32>| number.map_or(-1, |number| number as c_int);
        let now = KernelNumbers {
            cpu: now.cpu as c_int,
            node: number(now.node),
            mm_cid: number(now.mm_cid),
        };
        // SAFETY: the caller guarantees memory of this size, or NULL.
        unsafe { sized::store(numbers, size, &now) }
    })
}

/// Makes the process's IDs dense again, on request: evicts IDs at or above min(allowed CPUs,
/// threads), and those that no CPU has renewed for 100 ms. CPUs that still use theirs get one again
/// at their next operation.
///
/// Returns the number of evicted IDs; always 0 if the source is not PERCID_SOURCE_TABLE, whose IDs
/// are percid's own. Costs one fence of all CPUs, about 10 us. Async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn percid_compact_ids() -> u32 {
    guard(0, percid::compact_ids)
}

/// Sets the number of IDs that there may be while the process's threads move between more CPUs than
/// there are threads.
///
/// After ten steals per thread within 100 ms, percid assigns extra IDs, up to the number of CPUs
/// visited within 100 ms. They cost memory, and save the time of a steal per move, about 1 us.
/// `most` is a limit for them. UINT32_MAX sets none, which is the default, and 0 keeps the IDs
/// below min(allowed CPUs, threads) at any time. After the threads have not moved for 200 ms, the
/// next request for an ID by any CPU ends the extra ones.
///
/// The setting holds for the whole process; sources other than PERCID_SOURCE_TABLE ignore it.
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_set_id_limit(most: u32) {
    percid::set_id_limit(match most {
        0 => percid::IdLimit::Strict,
        u32::MAX => percid::IdLimit::Adaptive,
        most => percid::IdLimit::AtMost(most),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_one_that_has_a_number() {
        let reason = percid::init().reason;
        assert_eq!(percid_selection_reason_read(), SelectionReason::from_percid(reason));
        assert_ne!(percid_selection_reason_read(), SelectionReason::Other);
        let why = percid::id::SourceError::NoMembarrier;
        assert_eq!(
            SelectionReason::from_percid(percid::id::SelectionReason::TableUnavailable(why)),
            SelectionReason::TableUnavailable
        );
    }

    #[test]
    fn the_reason_is_written_as_it_reads() {
        let mut memory = [0_u8; 512];
        // SAFETY: the memory has 512 bytes.
        let length = unsafe { percid_reason(memory.as_mut_ptr().cast(), 512) };
        assert_eq!(&memory[..length], percid::init().reason.to_string().as_bytes());
    }
}
