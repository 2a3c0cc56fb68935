//! Pinning the calling thread to a CPU, and reading its current CPU.

use std::io;

/// `true` if threads can be pinned; on other systems they run where the scheduler puts them.
pub(crate) const CAN_PIN: bool = cfg!(target_os = "linux");

/// Confines the calling thread to `cpu`.
pub(crate) fn pin_this_thread(cpu: u32) -> io::Result<()> {
    pin_this_thread_to(&[cpu])
}

/// Confines the calling thread to these CPUs.
#[cfg(target_os = "linux")]
pub(crate) fn pin_this_thread_to(cpus: &[u32]) -> io::Result<()> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    // Not `libc::cpu_set_t`, which ends at CPU 1023.
    let largest = cpus.iter().copied().max().unwrap_or(0) as usize;
    let mut mask: Vec<libc::c_ulong> = vec![0; largest / BITS + 1];
    for &cpu in cpus {
        mask[cpu as usize / BITS] |= 1 << (cpu as usize % BITS);
    }
    // SAFETY: the kernel reads `size_of_val` bytes of `mask`, which are all allocated and
    // initialised.
    let result =
        unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_this_thread_to(_cpus: &[u32]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns `true` if the calling thread has a real-time priority.
#[cfg(target_os = "linux")]
pub(crate) fn has_realtime_priority() -> bool {
    // SAFETY: the call takes a number and accesses no memory.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy == libc::SCHED_FIFO || policy == libc::SCHED_RR
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_realtime_priority() -> bool {
    false
}

/// Lowers a real-time priority of the calling thread to the lowest one. Returns `true` if it has a
/// real-time priority.
#[cfg(target_os = "linux")]
pub(crate) fn lower_realtime_priority() -> io::Result<bool> {
    if !has_realtime_priority() {
        return Ok(false);
    }
    // SAFETY: zeros are valid for every member; C libraries have further ones, which the kernel
    // does not read.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // SAFETY: the kernel reads one `sched_param`, which `parameters` is.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &parameters) };
    if result == 0 { Ok(true) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_realtime_priority() -> io::Result<bool> {
    Ok(false)
}

/// Returns the CPU on which the calling thread currently runs.
#[cfg(target_os = "linux")]
pub(crate) fn this_cpu() -> Option<u32> {
    // SAFETY: the call takes no argument and accesses no memory of this program.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn this_cpu() -> Option<u32> {
    None
}
