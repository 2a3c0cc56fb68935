//! Starting threads that do not run the program's signal handlers.

/// Signals that an instruction or a system call of the thread itself raises. If they were blocked,
/// they would kill the process although a handler could have handled them: a sandbox that emulates
/// system calls needs SIGSYS.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Runs `body`, which starts a thread that inherits the calling thread's signal mask, with all of
/// the program's signals blocked except for the synchronous ones. Those of the C library are not
/// blocked: `setuid` in any thread waits for a handler in every other one.
pub(crate) fn without_the_programs<T>(body: impl FnOnce() -> T) -> T {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: all places are valid, and the set is filled before it is used.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for signal in SYNCHRONOUS {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), before.as_mut_ptr());
    }
    let result = body();
    // SAFETY: the set was filled by the call above, which cannot fail with valid arguments.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the signals that the calling thread blocks.
    fn blocked() -> Vec<i32> {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        let none = std::ptr::null();
        // SAFETY: the call only reads the mask into a valid place, which it fills.
        let set = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, none, set.as_mut_ptr());
            set.assume_init()
        };
        // SAFETY: the set and the signal numbers are valid.
        (1..=64).filter(|&signal| unsafe { libc::sigismember(&set, signal) } == 1).collect()
    }

    #[test]
    fn a_thread_gets_what_it_causes_itself_and_nothing_of_the_programs() {
        let before = blocked();
        let thread = || std::thread::spawn(blocked).join().expect("no panic");
        let of_thread = without_the_programs(thread);
        let all = (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal));
        // The C library reserves the signals between the standard and the real-time ones.
        let own = 32..libc::SIGRTMIN();
        let expected: Vec<i32> =
            all.filter(|signal| !SYNCHRONOUS.contains(signal) && !own.contains(signal)).collect();
        assert_eq!(of_thread, expected);
        assert_eq!(blocked(), before);
    }
}
