//! Blocking signals for the duration of a slow path.

/// The size of the kernel's own signal set in bytes.
const KERNEL_SIGSET_BYTES: usize = 8;

/// A guard: signals stay blocked for the calling thread until it is dropped.
///
/// It calls the kernel directly, because the C library removes its two internal signals (thread
/// cancellation, `setuid` broadcasts) from every set it passes on. A thread must not be cancelled
/// while it holds an ID in transit from one CPU to another.
#[derive(Debug)]
pub(crate) struct Blocked {
    before: u64,
}

/// Signals that an instruction or system call of the thread itself raises. If they were blocked,
/// they would kill the process although a handler could process them: a sandbox that emulates
/// system calls needs SIGSYS.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Blocks all signals except the synchronous ones (and the two that cannot be blocked).
pub(crate) fn block_all() -> Blocked {
    #[cfg(test)]
    crate::sys::steps::at(crate::sys::steps::Step::BlockSignals);
    let synchronous = SYNCHRONOUS.iter().fold(0, |set, signal| set | 1u64 << (signal - 1));
    let mut before = 0u64;
    change(libc::SIG_SETMASK, &!synchronous, Some(&mut before));
    Blocked { before }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        change(libc::SIG_SETMASK, &self.before, None);
    }
}

fn change(how: i32, set: &u64, before: Option<&mut u64>) {
    let before = before.map_or(std::ptr::null_mut(), |place| place as *mut u64);
    // SAFETY: both sets are 8 bytes long, as the kernel requires on 64-bit machines.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, how, set as *const u64, before, KERNEL_SIGSET_BYTES)
    };
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Returns the signals that the calling thread has blocked.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("/proc");
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(line.expect("a line of it").trim(), 16).expect("a number")
    }

    #[test]
    fn all_signals_are_blocked_but_those_that_the_thread_raises_itself() {
        let before = blocked();
        assert_eq!(before & 1 << (libc::SIGUSR1 - 1), 0, "else nothing is seen here");
        let guard = block_all();
        let unblocked = [libc::SIGKILL, libc::SIGSTOP].into_iter().chain(SYNCHRONOUS);
        let unblocked = unblocked.fold(0, |set, signal| set | 1u64 << (signal - 1));
        // Including the two signals of the C library.
        assert_eq!(blocked(), !unblocked);
        assert_eq!(!blocked() & 1 << (libc::SIGSYS - 1), 1 << (libc::SIGSYS - 1));
        drop(guard);
        assert_eq!(blocked(), before);
    }

    #[test]
    fn what_was_blocked_before_stays_blocked() {
        let outer = block_all();
        let all = blocked();
        drop(block_all());
        assert_eq!(blocked(), all);
        drop(outer);
    }
}
