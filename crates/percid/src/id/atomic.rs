//! The atomic source: no IDs, only a hint that keeps threads of different CPUs off each other's
//! lines.

use super::seen::Seen;
use crate::arena;
use crate::sys::atomic::AtomicU32;
use crate::sys::{affinity, preserving_errno, thread};

/// Operations for which a thread keeps its hint before it asks for its CPU again.
const HINT_OPERATIONS: u32 = 64;

/// The hints whose memory was opened.
static SEEN: Seen = Seen { end: AtomicU32::new(0) };

/// How many hints were ever used: sums visit these.
pub(crate) fn ids_seen() -> u32 {
    SEEN.end()
}

/// The calling thread's CPU as of up to 63 calls ago.
#[inline]
pub(crate) fn hint() -> u32 {
    let block = thread::own();
    // SAFETY: the block is this thread's own. A signal handler that runs between these accesses
    // leaves a valid hint behind, and any hint is as good as another.
    unsafe {
        let left = (*block).hint_left.wrapping_sub(1);
        if left >= HINT_OPERATIONS {
            (*block).hint = current_cpu();
            (*block).hint_left = HINT_OPERATIONS;
        } else {
            (*block).hint_left = left;
        }
        (*block).hint
    }
}

/// Out of line: the 63 calls between need no place for `errno`.
#[cold]
fn current_cpu() -> u32 {
    preserving_errno(affinity::current_cpu)
}

/// The hint, with its memory open; `None` if that is not available.
#[inline]
pub(crate) fn open_hint() -> Option<u32> {
    let hint = hint();
    (hint < SEEN.end() || open(hint)).then_some(hint)
}

#[cold]
fn open(hint: u32) -> bool {
    let is_open = preserving_errno(|| arena::open_id(hint));
    if is_open {
        SEEN.add(hint);
    }
    is_open
}

/// Opens the memory for the present hint. `false`: there is none.
pub(crate) fn ensure_id() -> bool {
    open_hint().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::MAX_CPUS;
    use crate::sys::steps::{self, Step};

    /// Makes the calling thread's hint `hint`, for as many calls as `left`.
    fn set_hint(hint: u32, left: u32) {
        // SAFETY: the block is this thread's own.
        unsafe { ((*thread::own()).hint, (*thread::own()).hint_left) = (hint, left) };
    }

    #[test]
    fn a_hint_is_seen_after_its_memory_is_open() {
        const HINT: u32 = MAX_CPUS as u32;
        set_hint(HINT, 2);
        let _watching = steps::watch(|step| {
            assert_eq!(step, Step::OpenId(HINT));
            assert!(ids_seen() <= HINT, "sums visit it already");
            Some(Err(libc::ENOMEM))
        });
        // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
        unsafe { *libc::__errno_location() = 1234 };
        assert_eq!(open_hint(), None);
        assert_eq!(crate::sys::errno(), 1234);
        assert!(ids_seen() <= HINT);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_hint_serves_for_64_operations() {
        set_hint(7, 64);
        let kept = (0..100).take_while(|_| hint() == 7).count();
        // The thread may be on a CPU of that number by chance.
        // SAFETY: takes nothing.
        assert!(kept == 64 || unsafe { libc::sched_getcpu() } == 7, "{kept}");
        set_hint(7, 0);
        let here = hint();
        assert!(here < MAX_CPUS as u32);
        // SAFETY: the block is this thread's own.
        assert_eq!(unsafe { (*thread::own()).hint_left }, 64);
    }

    #[test]
    fn every_hint_in_use_is_seen() {
        let hint = open_hint().expect("memory");
        assert!(hint < ids_seen());
    }
}
