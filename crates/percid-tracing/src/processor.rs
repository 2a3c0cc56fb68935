//! The CPU on which a thread runs, if that is cheap to determine.

/// Returns the CPU's number, or `None` if it is unknown or would cost a system call.
///
/// With glibc this is a load from memory that the kernel updates. Other C libraries of Linux call
/// the kernel.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn current() -> Option<u16> {
    // SAFETY: `sched_getcpu` has no arguments, and changes nothing but `errno`.
    u16::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn current() -> Option<u16> {
    None
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Pins the calling thread. Returns `false` if it may not run there.
    fn pin(cpu: usize) -> bool {
        // SAFETY: a zeroed set is valid and empty. The kernel reads `size_of_val(&set)` bytes of
        // it.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0
        }
    }

    #[test]
    fn a_pinned_thread_has_its_cpus_number() {
        let pinned = || (0..1024).filter(|&cpu| pin(cpu)).map(|cpu| (current(), cpu)).collect();
        let found: Vec<(Option<u16>, usize)> = std::thread::spawn(pinned).join().expect("no panic");
        assert!(!found.is_empty());
        assert!(found.iter().all(|(found, cpu)| found.map(usize::from) == Some(*cpu)), "{found:?}");
    }
}
