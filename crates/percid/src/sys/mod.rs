//! All that talks to the kernel and to the C library.
//!
//! Everything below this module is async-signal-safe unless a function says otherwise: plain system
//! calls into buffers on the stack, no allocation, no lock. The slow paths of the ID sources may
//! run inside a signal handler, and they call nothing else.

pub(crate) mod affinity;
pub(crate) mod atomic;
pub(crate) mod cell;
pub(crate) mod clock;
pub(crate) mod companion;
pub(crate) mod cpuset;
#[cfg(any(test, miri))]
pub(crate) mod described;
pub(crate) mod file;
pub(crate) mod holder;
pub(crate) mod membarrier;
#[cfg_attr(miri, path = "memory_in_miri.rs")]
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod race_detector;
mod raw_call;
pub(crate) mod rseq;
mod rseq_area;
pub(crate) mod signals;
pub(crate) mod stderr;
#[cfg(test)]
pub(crate) mod steps;
pub(crate) mod thread;
pub(crate) mod topology;

/// The largest number of CPUs that any Linux kernel supports (`NR_CPUS`, x86-64 with `MAXSMP`).
pub(crate) const MAX_CPUS: usize = 8192;

/// The `errno` of the call that failed last on this thread.
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// Runs `body` and puts `errno` back as it was, so that a percid operation in a signal handler
/// never changes what the interrupted code is about to read.
pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: as in `errno`.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid for this thread's whole life and no other thread writes through
    // it.
    let before = unsafe { *place };
    let result = body();
    // SAFETY: as above.
    unsafe { *place = before };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_is_put_back() {
        let set = |value| {
            // SAFETY: as in `errno`.
            unsafe { *libc::__errno_location() = value };
        };
        set(4242);
        preserving_errno(|| set(libc::EAGAIN));
        assert_eq!(errno(), 4242);
    }
}
