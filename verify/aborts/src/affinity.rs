//! The CPUs of the machine, the affinity of threads, and the time until a move takes effect.

use std::io;

/// Number of CPUs that a mask here can contain.
const CPUS: usize = 8192;

/// Returns the CPUs that the calling thread may use.
///
/// # Errors
///
/// Those of `sched_getaffinity`.
pub fn allowed() -> io::Result<Vec<u32>> {
    let mut mask = [0u64; CPUS / 64];
    // SAFETY: the mask is writable for its whole size.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr())
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let is_set = |&cpu: &u32| mask[cpu as usize / 64] >> (cpu % 64) & 1 == 1;
    Ok((0..CPUS as u32).filter(is_set).collect())
}

/// Restricts a thread (0: the calling one) to some CPUs.
///
/// # Errors
///
/// Those of `sched_setaffinity`.
pub fn restrict(thread: i32, cpus: &[u32]) -> io::Result<()> {
    let mut mask = [0u64; CPUS / 64];
    for &cpu in cpus {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the mask is readable for its whole size.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, thread, size_of_val(&mask), mask.as_ptr())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks for more than a fair share of the CPU, for the calling thread and what it starts. Without
/// the right to it, rounds are repeated more often on a busy machine.
pub fn be_urgent() {
    // SAFETY: plain integers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
}
