//! The usable CPUs, and moving threads between them.

/// Returns the CPUs that this process may use.
pub(crate) fn allowed() -> Vec<u32> {
    percid::machine::read().allowed.iter().collect()
}

/// Restricts a thread (0: the calling one) to some CPUs. Returns `false` if it has ended or the
/// CPUs are gone.
pub(crate) fn restrict(thread: i32, cpus: &[u32]) -> bool {
    let mut mask = [0u64; 128];
    for &cpu in cpus {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the mask is readable for its whole size.
    unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, thread, size_of_val(&mask), mask.as_ptr()) == 0
    }
}

/// Returns the calling thread's number.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Sends a signal to a thread of this process.
pub(crate) fn signal(thread: i32, number: i32) -> bool {
    // SAFETY: plain integers; a thread that has ended is an error, not a fault.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, number) == 0 }
}

/// Installs a handler for a signal.
pub(crate) fn handle(number: i32, handler: extern "C" fn(i32)) {
    // SAFETY: the structure is zeroed, which is valid, and the handler does async-signal-safe work
    // only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(number, &action, std::ptr::null_mut());
    }
}
