//! The kernel source: the concurrency ID that the kernel keeps in the rseq area (`mm_cid`).
//!
//! The kernel guarantees that no two running threads of a process hold the same ID, and a critical
//! section is aborted before its thread's ID can change. This module adds the memory: an ID is
//! admitted to the fast path once its slot of the arena is open.

use super::source_error::SourceError;
use crate::arena;
use crate::critical::FAST_PATH;
use crate::sys::registration::Registration;
use crate::sys::rseq;

/// Prepares the source: it only needs an ID in the area.
pub(crate) fn prepare(registration: Registration) -> Result<(), SourceError> {
    match registration {
        Registration::Libc | Registration::Percid => {}
        Registration::Shared => return Err(SourceError::SharedArea),
        other => return Err(SourceError::NoRseq(other)),
    }
    if rseq::has_mm_cid(registration) { Ok(()) } else { Err(SourceError::NoKernelIds) }
}

/// Returns the kernel's ID of the calling thread, as a hint, if it was admitted. The thread may
/// have got another ID since it made sure of that.
#[inline]
pub(crate) fn current_admitted() -> Option<u32> {
    current().and_then(admitted)
}

#[inline]
fn admitted(id: u32) -> Option<u32> {
    (id < FAST_PATH.kernel_limit()).then_some(id)
}

/// Returns the kernel's ID of the calling thread, as a hint: it may change at once.
#[inline]
pub(crate) fn current() -> Option<u32> {
    let area = FAST_PATH.area();
    rseq::cpu_id(area).map(|_| rseq::mm_cid(area))
}

/// Returns the number of IDs ever admitted: sums visit these.
#[inline]
pub(crate) fn id_count() -> u32 {
    FAST_PATH.kernel_limit()
}

/// Admits the calling thread's ID. Returns `false` if it has none, or if there is no memory for it.
#[cold]
pub(crate) fn ensure_id() -> bool {
    current().or_else(register).is_some_and(admit)
}

/// Admits `id` once its memory is open. Returns `false` if there is no memory for it.
fn admit(id: u32) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::steps::{self, Step};

    #[test]
    fn an_area_without_an_id_of_the_kernel_is_refused() {
        let shared = Registration::Shared;
        assert_eq!(prepare(shared), Err(SourceError::SharedArea));
        for other in [Registration::Occupied, Registration::Refused(1), Registration::Unsupported] {
            assert_eq!(prepare(other), Err(SourceError::NoRseq(other)));
        }
        let own = Registration::Percid;
        assert_eq!(prepare(own).is_ok(), rseq::has_mm_cid(own));
    }

    #[test]
    fn an_id_is_admitted_after_its_memory_is_open() {
        // An ID that exists on no machine, so that other tests do not admit it.
        const ID: u32 = crate::sys::MAX_CPUS as u32;
        let _watching = steps::watch(|step| {
            assert_eq!(step, Step::OpenId(ID));
            assert!(FAST_PATH.kernel_limit() <= ID, "sections may use it already");
            Some(Err(libc::ENOMEM))
        });
        assert!(!admit(ID));
        assert_eq!(admitted(ID), None);
        assert!(FAST_PATH.kernel_limit() <= ID);
    }
}
