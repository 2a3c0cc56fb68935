//! Threads, CPUs and signal handlers of this process.

use std::ffi::{c_int, c_void};
use std::io;

/// CPUs of an affinity mask: the kernel's limit of x86-64.
const MASK_CPUS: usize = 8192;

type Mask = [u64; MASK_CPUS / 64];

/// Returns the kernel's number of the calling thread.
pub(crate) fn thread() -> i32 {
    // SAFETY: no argument.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Returns the CPUs that the calling thread may use.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    let mut mask: Mask = [0; MASK_CPUS / 64];
    let bytes = size_of_val(&mask);
    // SAFETY: the mask is writable for its whole size; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, mask.as_mut_ptr()) };
    let is_set = |&cpu: &u32| mask[cpu as usize / 64] & (1 << (cpu % 64)) != 0;
    (0..MASK_CPUS as u32).filter(is_set).collect()
}

/// Moves a thread to `cpus`. Returns `false` if the kernel refuses.
pub(crate) fn move_to(thread: i32, cpus: &[u32]) -> bool {
    let mut mask: Mask = [0; MASK_CPUS / 64];
    for &cpu in cpus {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    let bytes = size_of_val(&mask);
    // SAFETY: the mask is readable for its whole size.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, bytes, mask.as_ptr()) == 0 }
}

/// Sends a signal to a thread of this process. Returns `false` if the kernel refuses.
pub(crate) fn signal(thread: i32, signal: c_int) -> bool {
    // SAFETY: no pointers; a thread of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) == 0 }
}

/// A handler of a signal, with the signal's context.
pub(crate) type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// A handler that is installed until this value is dropped: then the earlier one is restored.
pub(crate) struct Installed {
    signal: c_int,
    earlier: libc::sigaction,
}

impl Installed {
    /// Installs a handler, and unblocks the signal in the calling thread.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn new(signal: c_int, handler: Handler) -> io::Result<Installed> {
        // SAFETY: zero is a valid action, and both are valid for the call.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            // A handler runs operations, in whose sections there may be another trap.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER;
            let mut earlier = std::mem::zeroed();
            if libc::sigaction(signal, &raw const action, &raw mut earlier) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Installed { signal, earlier })
        }
    }
}

impl Installed {
    /// Restores the earlier handler.
    pub(crate) fn restore(&self) {
        // SAFETY: the action is one that the kernel has returned.
        unsafe { libc::sigaction(self.signal, &raw const self.earlier, std::ptr::null_mut()) };
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Lets the calling thread receive a signal.
pub(crate) fn unblock(signal: c_int) {
    // SAFETY: a set of signals is plain memory that `sigemptyset` initialises.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Runs `body`, the work of a signal handler, and preserves `errno`.
pub(crate) fn preserving_errno(body: impl FnOnce()) {
    // SAFETY: the calling thread's own `errno`.
    let errno = unsafe { *libc::__errno_location() };
    body();
    // SAFETY: the same.
    unsafe { *libc::__errno_location() = errno };
}
