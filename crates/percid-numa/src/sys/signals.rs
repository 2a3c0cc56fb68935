//! Starting threads that run none of the program's signal handlers.

/// Signals that an instruction or system call of this very thread raises. Blocked, they would kill
/// the process where a handler could have dealt with them: a sandbox that emulates system calls
/// needs SIGSYS.
const SYNCHRONOUS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Runs `body`, which starts a thread that inherits the calling thread's signals, with all of the
/// program's signals blocked but the synchronous ones. Those of the C library are not: `setuid` in
/// any thread waits for a handler in every other one.
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

    /// The signals that the calling thread blocks.
    fn blocked() -> Vec<i32> {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        let none = std::ptr::null();
        // SAFETY: asks only; the place is valid, and filled by the call.
        let set = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, none, set.as_mut_ptr());
            set.assume_init()
        };
        // SAFETY: the set is valid, signal numbers too.
        (1..=64).filter(|&signal| unsafe { libc::sigismember(&set, signal) } == 1).collect()
    }

    #[test]
    fn a_thread_gets_what_it_causes_itself_and_nothing_of_the_programs() {
        let before = blocked();
        let thread = || std::thread::spawn(blocked).join().expect("no panic");
        let of_thread = without_the_programs(thread);
        let all = (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal));
        // The C library keeps those between the standard and the real-time ones for itself.
        let own = 32..libc::SIGRTMIN();
        let expected: Vec<i32> =
            all.filter(|signal| !SYNCHRONOUS.contains(signal) && !own.contains(signal)).collect();
        assert_eq!(of_thread, expected);
        assert_eq!(blocked(), before);
    }
}
