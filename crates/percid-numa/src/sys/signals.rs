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
