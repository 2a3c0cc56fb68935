//! percid's own block of thread-local storage, and the location of the C library's rseq area.
//!
//! The block must lie at the same distance from the thread pointer in every thread, because the
//! critical sections access it (or the C library's area) at *thread pointer + one process-wide
//! offset*. Rust's `thread_local!` guarantees that only in executables, not in shared libraries
//! that are loaded late. The block is therefore defined in assembly and accessed in the
//! initial-exec model, which the loader either satisfies for all threads, or it refuses the
//! library.

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_arch = "aarch64",
    not(any(percid_elsewhere, percid_portable))
))]
#[path = "aarch64.rs"]
mod arch;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_arch = "riscv64",
    not(any(percid_elsewhere, percid_portable))
))]
#[path = "riscv64.rs"]
mod arch;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    target_arch = "x86_64",
    not(any(percid_elsewhere, percid_portable))
))]
#[path = "x86_64.rs"]
mod arch;
mod block;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod libc_rseq;
#[allow(dead_code, reason = "only where there are no sections")]
mod portable;

without_sections! {
    use portable as arch;
}

use std::ptr;

pub(crate) use arch::{own_offset, token};
pub(crate) use block::Block;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) use libc_rseq::{libc_rseq, shared_offset};

/// Returns `true` if the C library supports rseq.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) fn has_libc_rseq() -> bool {
    libc_rseq().is_some()
}

/// Returns `false`: percid does not check here whether the C library supports rseq.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
pub(crate) fn has_libc_rseq() -> bool {
    false
}

/// Returns the address of the calling thread's block.
#[inline(always)]
pub(crate) fn own() -> *mut Block {
    at(own_offset()).cast()
}

/// Returns the address at `offset` bytes from the thread pointer.
#[inline(always)]
pub(crate) fn at(offset: isize) -> *mut u8 {
    ptr::with_exposed_provenance_mut(arch::pointer().wrapping_add_signed(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_starts_with_the_same_image_in_a_place_of_its_own() {
        let look = || {
            // SAFETY: the block is this thread's own, and nothing writes to it while it is
            // borrowed.
            let block = unsafe { &*own() };
            assert_eq!(own() as usize % align_of::<Block>(), 0);
            assert_eq!((block.previous_cpu, block.refused, block.registered), (0, 0, 0));
            own() as usize
        };
        let here = look();
        let there = std::thread::spawn(look).join().expect("no panic");
        assert_ne!(here, there);
    }
}
