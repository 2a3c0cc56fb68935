//! On which CPU a thread runs, where that is cheap to ask.

/// The CPU's number; `None` where it costs a system call, or is not known.
///
/// With glibc it is a load from memory that the kernel keeps up to date; other C libraries of Linux
/// ask the kernel.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn current() -> Option<u16> {
    // SAFETY: it has no arguments, and changes nothing but `errno`.
    u16::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn current() -> Option<u16> {
    None
}
