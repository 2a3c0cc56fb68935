//! The fence of the protocols that take something away from CPUs: critical sections in flight have
//! committed or been aborted when it returns, and every CPU that runs a thread of the process has
//! gone through a full barrier.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

use super::unavailable::Unavailable;
use crate::sys::membarrier;

/// Skips all fences: the negative control of the stress tests, which must then lose something.
#[cfg(feature = "testing")]
pub(crate) static SKIP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Makes sure that this process can fence. Cost: 2 us while single-threaded, about 20 ms
/// afterwards, less than 1 us when repeated.
///
/// # Errors
///
/// Why it cannot.
pub(crate) fn prepare() -> Result<(), Unavailable> {
    if !membarrier::has_rseq_flavour(membarrier::commands()) {
        return Err(Unavailable::NoMembarrier);
    }
    membarrier::register().map_err(Unavailable::MembarrierRefused)?;
    // CPU 0 stands for all: this asks whether the kernel can fence one CPU (Linux 5.10).
    membarrier::fence_cpu(0).map_err(Unavailable::MembarrierRefused)
}

/// Whether this process can fence; found out once.
pub(crate) fn is_available() -> bool {
    static KNOWN: AtomicU32 = AtomicU32::new(UNKNOWN);
    const UNKNOWN: u32 = 0;
    const YES: u32 = 1;
    const NO: u32 = 2;
    if KNOWN.load(Relaxed) == UNKNOWN {
        KNOWN.store(if prepare().is_ok() { YES } else { NO }, Relaxed);
    }
    KNOWN.load(Relaxed) == YES
}

/// The other side of [`all`]: what a thread runs between a store and a load that a fencing thread
/// must not see in the opposite order. It costs nothing: the fence is the barrier of both.
#[inline(always)]
pub(crate) fn light() {
    compiler_fence(SeqCst);
}

/// Fences one CPU.
///
/// # Errors
///
/// The `errno`.
pub(crate) fn cpu(cpu: u32) -> Result<(), i32> {
    if skipped() { Ok(()) } else { membarrier::fence_cpu(cpu) }
}

/// Fences all CPUs, some 10 us. In a child of `fork` the parent's registration is not relied upon.
///
/// # Errors
///
/// The `errno`.
pub(crate) fn all() -> Result<(), i32> {
    if skipped() {
        return Ok(());
    }
    match membarrier::fence_all() {
        Err(libc::EPERM) => membarrier::register().and_then(|()| membarrier::fence_all()),
        done => done,
    }
}

fn skipped() -> bool {
    #[cfg(feature = "testing")]
    return SKIP.load(Relaxed);
    #[cfg(not(feature = "testing"))]
    false
}
