//! The interface to the kernel and to the C library.

pub(crate) mod atomic;
pub(crate) mod clock;
pub(crate) mod fault;
mod file;
pub(crate) mod futex;
pub(crate) mod huge;
pub(crate) mod last_fault;
pub(crate) mod maps;
pub(crate) mod memfd;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod nodes;
pub(crate) mod own_stack;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod thread_memory;
pub(crate) mod userfaultfd;

/// The largest number of CPUs that any Linux kernel supports (`NR_CPUS`, x86-64 with `MAXSMP`).
pub(crate) const MAX_CPUS: usize = 8192;

/// Returns the `errno` of the last call that failed on this thread.
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// Runs `body` and restores `errno`: a fault handler must not change a value that the interrupted
/// code may read.
pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = body();
    // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
    unsafe { *libc::__errno_location() = before };
    result
}
