//! The atomic source: no IDs, only a hint that keeps threads of different CPUs off each other's
//! lines.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use crate::arena;
use crate::sys::{preserving_errno, thread};

/// Operations for which a thread keeps its hint before it asks for its CPU again.
const HINT_OPERATIONS: u32 = 64;

/// One more than the largest hint whose memory was opened.
static IDS_SEEN: AtomicU32 = AtomicU32::new(0);

/// How many hints were ever used: sums visit these.
pub(crate) fn ids_seen() -> u32 {
    IDS_SEEN.load(Acquire)
}

/// The calling thread's CPU as of up to 63 calls ago.
pub(crate) fn hint() -> u32 {
    let block = thread::own();
    // SAFETY: the block is this thread's own. A signal handler that runs between these accesses
    // leaves a valid hint behind, and any hint is as good as another.
    unsafe {
        let left = (*block).hint_left.wrapping_sub(1);
        if left >= HINT_OPERATIONS {
            let cpu = preserving_errno(|| libc::sched_getcpu());
            (*block).hint = u32::try_from(cpu).unwrap_or(0);
            (*block).hint_left = HINT_OPERATIONS;
        } else {
            (*block).hint_left = left;
        }
        (*block).hint
    }
}

/// The hint, with its memory open; `None` if that is not available.
pub(crate) fn open_hint() -> Option<u32> {
    let hint = hint();
    if hint >= IDS_SEEN.load(Relaxed) {
        if !preserving_errno(|| arena::open_id(hint)) {
            return None;
        }
        IDS_SEEN.fetch_max(hint + 1, AcqRel);
    }
    Some(hint)
}

/// Opens the memory for the present hint. `false`: there is none.
pub(crate) fn ensure_id() -> bool {
    open_hint().is_some()
}
