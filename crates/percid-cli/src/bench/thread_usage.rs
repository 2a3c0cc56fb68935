//! The kernel's counts of the calling thread.

/// Counts since the thread began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadUsage {
    /// Number of preemptions of the thread.
    pub(crate) preemptions: i64,
    /// Page faults served without reading from a disk.
    pub(crate) minor_faults: i64,
}

impl ThreadUsage {
    #[cfg(target_os = "linux")]
    pub(crate) fn now() -> Self {
        // SAFETY: all-zero bytes are a valid `rusage`, a plain structure of integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a `rusage` that the kernel may write. With these arguments the call
        // cannot fail.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        let (preemptions, minor_faults) = (usage.ru_nivcsw, usage.ru_minflt);
        #[allow(clippy::useless_conversion, reason = "they have 32 bits on machines of 32 bits")]
        ThreadUsage { preemptions: preemptions.into(), minor_faults: minor_faults.into() }
    }

    /// Returns zeros: other systems do not count for a single thread, so no batch is discarded.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn now() -> Self {
        ThreadUsage { preemptions: 0, minor_faults: 0 }
    }
}
