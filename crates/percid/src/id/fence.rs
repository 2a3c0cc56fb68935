//! The fence of the protocols that claim something from CPUs. When it returns, critical sections in
//! flight have committed or been aborted. Every CPU that runs a thread of the process has executed
//! a full barrier.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

use super::source_error::SourceError;
use crate::sys::{membarrier, preserving_errno};

/// Skips all fences: the negative control of the stress tests, which must then lose something.
#[cfg(feature = "testing")]
pub(crate) static SKIP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Makes sure that this process can fence. The cost is 2 us while single-threaded, about 20 ms
/// later, and less than 1 us when repeated.
///
/// # Errors
///
/// The reason why it cannot.
pub(crate) fn prepare() -> Result<(), SourceError> {
    let commands = membarrier::commands().map_err(SourceError::MembarrierRefused)?;
    if !membarrier::has_rseq_flavour(commands) {
        return Err(SourceError::NoMembarrier);
    }
    membarrier::register().map_err(SourceError::MembarrierRefused)?;
    // CPU 0 stands for all: this checks that the kernel can fence one CPU (Linux 5.10).
    membarrier::fence_cpu(0).map_err(SourceError::MembarrierRefused)
}

/// Returns `true` if this process can fence; checked once.
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

/// The counterpart of [`all`]. A thread runs it between a store and a load that a fencing thread
/// must not observe in the opposite order. It costs nothing: the fence is the barrier of both
/// threads.
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

/// Fences all CPUs, about 10 us, and preserves `errno`. A child of `fork` does not rely on the
/// parent's registration: it registers if needed.
///
/// # Errors
///
/// The `errno`.
pub(crate) fn all() -> Result<(), i32> {
    if skipped() {
        return Ok(());
    }
    preserving_errno(|| match membarrier::fence_all() {
        Err(libc::EPERM) => membarrier::register().and_then(|()| membarrier::fence_all()),
        done => done,
    })
}

fn skipped() -> bool {
    #[cfg(feature = "testing")]
    return SKIP.load(Relaxed);
    #[cfg(not(feature = "testing"))]
    false
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::sys::steps::{self, Answer, Fence, Step};

    /// Returns the requests to the kernel in `body`, and the result of `body`. `answer` gets the
    /// number of earlier requests.
    fn asked<T>(
        answer: impl Fn(usize, Fence) -> Answer + 'static,
        body: impl FnOnce() -> T,
    ) -> (Vec<Fence>, T) {
        let asked = Rc::new(RefCell::new(Vec::new()));
        let note = Rc::clone(&asked);
        let _watching = steps::watch(move |step| {
            let Step::Membarrier(fence) = step else { return None };
            note.borrow_mut().push(fence);
            answer(note.borrow().len() - 1, fence)
        });
        let result = body();
        (asked.take(), result)
    }

    #[test]
    fn a_process_that_is_not_registered_registers_and_fences_again() {
        let refuse = |before, _| Some(if before == 0 { Err(libc::EPERM) } else { Ok(()) });
        let (steps, done) = asked(refuse, all);
        assert_eq!(steps, [Fence::OfAll, Fence::Register, Fence::OfAll]);
        assert_eq!(done, Ok(()));
    }

    #[test]
    fn a_fence_that_is_refused_is_refused() {
        assert_eq!(asked(|_, _| Some(Err(libc::EPERM)), all).1, Err(libc::EPERM));
        let (steps, done) = asked(|_, _| Some(Err(libc::ENOSYS)), all);
        assert_eq!((steps, done), (vec![Fence::OfAll], Err(libc::ENOSYS)));
        assert_eq!(asked(|_, _| Some(Err(libc::EINVAL)), || cpu(0)).1, Err(libc::EINVAL));
    }

    #[test]
    fn what_is_missing_is_named() {
        if !membarrier::commands().is_ok_and(membarrier::has_rseq_flavour) {
            return;
        }
        let refused = |which: Fence| {
            // An errno that the kernel never returns here.
            let answer = move |_, fence| (fence == which).then_some(Err(libc::EILSEQ));
            asked(answer, prepare).1
        };
        for step in [Fence::Query, Fence::Register, Fence::OfCpu(0)] {
            assert_eq!(refused(step), Err(SourceError::MembarrierRefused(libc::EILSEQ)));
        }
        // Without the kernel the query reports no commands.
        let none = |_, fence| (fence == Fence::Query).then_some(Ok(()));
        assert_eq!(asked(none, prepare).1, Err(SourceError::NoMembarrier));
    }
}
