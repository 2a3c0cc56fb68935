//! The atomic source: no IDs, only a hint that keeps threads of different CPUs on different cache
//! lines.

use super::seen::Seen;
use crate::arena;
use crate::sys::atomic::AtomicU32;
use crate::sys::{affinity, preserving_errno, thread};

/// Operations for which a thread keeps its hint before it reads its CPU again.
const HINT_OPERATIONS: u32 = 64;

/// The hints whose memory was opened.
static SEEN: Seen = Seen { end: AtomicU32::new(0) };

/// Reads the number of copies in advance. On systems other than Linux that may need operations that
/// are not async-signal-safe.
pub(crate) fn prepare() {
    affinity::possible_count();
}

/// Returns the number of hints ever used: sums visit these.
pub(crate) fn id_count() -> u32 {
    SEEN.end()
}

/// Returns the CPU of the calling thread as of up to 63 calls ago. It may be older if only
/// additions were done: see [`copy`].
#[inline]
pub(crate) fn hint() -> u32 {
    let block = thread::own();
    // SAFETY: the block is this thread's own. A signal handler that runs between these accesses
    // leaves a valid hint, and any hint is valid here.
    unsafe {
        let left = (*block).hint_left.wrapping_sub(1);
        if left >= HINT_OPERATIONS {
            renew();
        } else {
            (*block).hint_left = left;
        }
        (*block).hint
    }
}

#[cold]
#[inline(never)]
fn renew() {
    let block = thread::own();
    // SAFETY: the block is this thread's own, and a signal handler leaves a valid hint.
    unsafe {
        (*block).hint = current_cpu();
        (*block).hint_left = HINT_OPERATIONS;
        // The memory of the last hint stays open, but it is not the memory of this hint.
        (*block).copy = 0;
    }
}

fn current_cpu() -> u32 {
    preserving_errno(affinity::current_cpu)
}

/// Returns the hint, with its memory open; `None` if that is not available.
#[inline]
pub(crate) fn open_hint() -> Option<u32> {
    let hint = hint();
    (hint < SEEN.end() || open(hint)).then_some(hint)
}

/// Returns the offset from the shared slot to the memory that the calling thread's hint led to
/// last, in bytes; 0 if there is none. That memory is open.
///
/// This is a load from thread-local storage, and no store. A locked instruction waits until every
/// earlier store is in the cache. So counting the operations here would cost three quarters of the
/// addition itself (Golden Cove: 7.8 ns with a count, 4.4 without). Callers of this function must
/// call [`renew_copy`] from time to time.
#[inline(always)]
pub(crate) fn copy() -> usize {
    // SAFETY: the block is this thread's own.
    unsafe { (*thread::own()).copy }
}

/// Returns the same as [`copy`], after reading the CPU if that is due, and opening the memory if
/// needed.
pub(crate) fn open_copy() -> Option<usize> {
    let copy = arena::distance(open_hint()?);
    // SAFETY: the block is this thread's own. If a signal handler has stored another copy since,
    // this one is open all the same.
    unsafe { (*thread::own()).copy = copy };
    Some(copy)
}

/// Reads the CPU now, for callers that have used [`copy`] for thousands of operations.
#[cold]
#[inline(never)]
pub(crate) fn renew_copy() {
    // SAFETY: the block is this thread's own.
    unsafe { (*thread::own()).hint_left = 0 };
    open_copy();
}

#[cold]
fn open(hint: u32) -> bool {
    let is_open = preserving_errno(|| arena::open_id(hint));
    if is_open {
        SEEN.add(hint);
    }
    is_open
}

/// Opens the memory for the current hint. Returns `false` if there is none.
pub(crate) fn ensure_id() -> bool {
    open_hint().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::MAX_CPUS;
    use crate::sys::steps::{self, Step};

    /// Sets the calling thread's hint to `hint`, for `left` calls.
    fn set_hint(hint: u32, left: u32) {
        // SAFETY: the block is this thread's own.
        unsafe { ((*thread::own()).hint, (*thread::own()).hint_left) = (hint, left) };
    }

    #[test]
    #[cfg_attr(not(unix), ignore = "errno is kept on Unix")]
    fn a_hint_is_seen_after_its_memory_is_open() {
        const HINT: u32 = MAX_CPUS as u32;
        set_hint(HINT, 2);
        let _watching = steps::watch(|step| {
            assert_eq!(step, Step::OpenId(HINT));
            assert!(id_count() <= HINT, "sums visit it already");
            Some(Err(steps::REFUSED))
        });
        crate::sys::set_errno(1234);
        assert_eq!(open_hint(), None);
        assert_eq!(crate::sys::errno(), 1234);
        assert!(id_count() <= HINT);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_hint_serves_for_64_operations() {
        // No CPU has this number.
        const HINT: u32 = MAX_CPUS as u32;
        set_hint(HINT, 64);
        assert_eq!((0..100).take_while(|_| hint() == HINT).count(), 64);
        set_hint(HINT, 0);
        // SAFETY: the block is this thread's own, and nothing is added there.
        unsafe { (*thread::own()).copy = arena::distance(7) };
        let here = hint();
        assert_eq!(copy(), 0, "that was the last hint's");
        assert!(here < MAX_CPUS as u32);
        // SAFETY: the block is this thread's own.
        assert_eq!(unsafe { (*thread::own()).hint_left }, 64);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_renewed_copy_is_that_of_this_cpu() {
        // No CPU has this number.
        const HINT: u32 = MAX_CPUS as u32;
        set_hint(HINT, 64);
        // SAFETY: the block is this thread's own, and nothing is added there.
        unsafe { (*thread::own()).copy = arena::distance(7) };
        renew_copy();
        // SAFETY: the block is this thread's own.
        let (hint, left) = unsafe { ((*thread::own()).hint, (*thread::own()).hint_left) };
        assert_eq!((copy(), left), (arena::distance(hint), HINT_OPERATIONS));
        assert!(hint < MAX_CPUS as u32 && hint < id_count());
    }

    #[test]
    fn a_hint_without_memory_has_no_copy() {
        set_hint(0, 64);
        assert!(open_copy().is_some());
        let _watching = steps::watch(|_| Some(Err(steps::REFUSED)));
        // SAFETY: the block is this thread's own.
        unsafe { ((*thread::own()).hint, (*thread::own()).copy) = (MAX_CPUS as u32 + 1, 0) };
        assert_eq!((open_copy(), copy()), (None, 0));
    }

    #[test]
    fn every_hint_in_use_is_seen() {
        let hint = open_hint().expect("memory");
        assert!(hint < id_count());
    }
}
