//! The kernel source: the concurrency ID that the kernel keeps in the rseq area (`mm_cid`).
//!
//! The kernel guarantees that no two running threads of a process hold the same ID, and a critical
//! section is aborted before its thread's ID can change. What this module adds is the memory: an ID is
//! admitted to the fast path once its slot of the arena is open.

use super::Unavailable;
use crate::arena;
use crate::critical::FAST_PATH;
use crate::sys::process::{self, Release};
use crate::sys::rseq;

/// How the kernel hands out its IDs; the generations of the published work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Generation {
    /// Linux 6.3 to 6.12: dense, but a CPU gets another ID after every pause.
    CacheCold,
    /// Linux 6.13: cache-local, but never dense again once threads or allowed CPUs have become fewer.
    NotCompacting,
    /// Linux 6.14 to 6.18: cache-local and dense.
    CacheLocal,
    /// Linux 6.19 and later: an ID belongs to a thread or to a CPU, and may exceed the density bound.
    Owned,
}

impl Generation {
    /// The generation of the running kernel, by its release.
    pub(crate) fn running() -> Option<Generation> {
        Release::running().map(Generation::of)
    }

    fn of(release: Release) -> Generation {
        match (release.major, release.minor) {
            (..6, _) | (6, ..=12) => Generation::CacheCold,
            (6, 13) => Generation::NotCompacting,
            (6, 14..=18) => Generation::CacheLocal,
            _ => Generation::Owned,
        }
    }
}

/// Makes the source ready: nothing is needed but an ID in the area.
pub(crate) fn prepare(registration: rseq::Registration) -> Result<(), Unavailable> {
    match registration {
        rseq::Registration::Libc | rseq::Registration::Own => {}
        other => return Err(Unavailable::NoRseq(other)),
    }
    if rseq::has_mm_cid(registration) { Ok(()) } else { Err(Unavailable::NoKernelIds) }
}

/// Whether the calling thread's ID lies within the density bound now. It does not if the kernel was
/// built without ID compaction: then the ID is the CPU number.
pub(crate) fn looks_dense() -> bool {
    process::threads().is_none_or(|threads| rseq::mm_cid(FAST_PATH.area()) < threads)
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

/// Admits the calling thread's ID. `false`: it has none, or no memory can be had for it.
#[cold]
pub(crate) fn enter() -> bool {
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
    rseq::register_own().ok()?;
    current()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_by_release() {
        let of = |major, minor| Generation::of(Release { major, minor });
        assert_eq!(of(5, 19), Generation::CacheCold);
        assert_eq!(of(6, 12), Generation::CacheCold);
        assert_eq!(of(6, 13), Generation::NotCompacting);
        assert_eq!(of(6, 14), Generation::CacheLocal);
        assert_eq!(of(6, 18), Generation::CacheLocal);
        assert_eq!(of(6, 19), Generation::Owned);
        assert_eq!(of(7, 0), Generation::Owned);
    }
}
