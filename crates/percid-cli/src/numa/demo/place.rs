//! The CPUs on which the calling thread runs, and the node of its new memory.

use std::io;

const BITS: usize = libc::c_ulong::BITS as usize;

/// Modes of `set_mempolicy` (`linux/mempolicy.h`).
const MPOL_DEFAULT: libc::c_int = 0;
const MPOL_BIND: libc::c_int = 2;

fn set(numbers: &[u32]) -> Vec<libc::c_ulong> {
    let last = numbers.iter().copied().max().unwrap_or(0) as usize;
    let mut words = vec![0; last / BITS + 1];
    for &number in numbers {
        words[number as usize / BITS] |= 1 << (number as usize % BITS);
    }
    words
}

fn result(done: libc::c_long) -> io::Result<()> {
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Confines the calling thread to these CPUs.
pub(super) fn confine(cpus: &[u32]) -> io::Result<()> {
    let mask = set(cpus);
    // SAFETY: the kernel reads `size_of_val` bytes of the mask.
    result(unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask[..]), mask.as_ptr())
    })
}

/// Binds the calling thread's new pages to this node; with `None` they come from the node it runs
/// on.
pub(super) fn bind(node: Option<u32>) -> io::Result<()> {
    let mask = set(node.as_slice());
    let (mode, mask) = match node {
        Some(_) => (MPOL_BIND, &mask[..]),
        None => (MPOL_DEFAULT, &[][..]),
    };
    // The kernel ignores the last of these bits.
    let bits = if mask.is_empty() { 0 } else { mask.len() * BITS + 1 };
    let mask = if mask.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the kernel reads `bits - 1` bits of the mask, which has that many; if the mask is
    // null, it reads nothing.
    result(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) })
}
