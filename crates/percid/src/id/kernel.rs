//! The kernel source: the concurrency ID that the kernel keeps in the rseq area (`mm_cid`).
//!
//! The kernel guarantees that no two running threads of a process hold the same ID, and a critical
//! section is aborted before its thread's ID can change. What this module adds is the memory: an ID
//! is admitted to the fast path once its slot of the arena is open.

use super::unavailable::Unavailable;
use crate::arena;
use crate::critical::FAST_PATH;
use crate::sys::rseq;

/// Makes the source ready: nothing is needed but an ID in the area.
pub(crate) fn prepare(registration: rseq::Registration) -> Result<(), Unavailable> {
    match registration {
        rseq::Registration::Libc | rseq::Registration::Own => {}
        rseq::Registration::Shared => return Err(Unavailable::SharedArea),
        other => return Err(Unavailable::NoRseq(other)),
    }
    if rseq::has_mm_cid(registration) { Ok(()) } else { Err(Unavailable::NoKernelIds) }
}

/// The kernel's ID of the calling thread, as a hint: it may change at once.
pub(crate) fn current() -> Option<u32> {
    let area = FAST_PATH.area();
    rseq::cpu_id(area).map(|_| rseq::mm_cid(area))
}

/// How many IDs were ever admitted: sums visit these.
pub(crate) fn ids_seen() -> u32 {
    FAST_PATH.kernel_limit()
}

/// Admits the calling thread's ID. `false`: it has none, or there is no memory for it.
#[cold]
pub(crate) fn ensure_id() -> bool {
    let Some(id) = current().or_else(register) else {
        return false;
    };
    if id < FAST_PATH.kernel_limit() {
        return true;
    }
    let open = arena::open_id(id);
    if open {
        FAST_PATH.raise_kernel_limit(id + 1);
    }
    open
}

fn register() -> Option<u32> {
    rseq::register_thread().then(current)?
}
