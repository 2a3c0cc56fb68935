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

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Pins the calling thread, `false` if it may not run there.
    fn pin(cpu: usize) -> bool {
        // SAFETY: a set of zeros is empty, and the kernel reads as many bytes as it has.
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
