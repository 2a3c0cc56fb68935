//! percid's own block of thread-local storage, and where the C library keeps its rseq area.
//!
//! The block must lie at the same distance from the thread pointer in every thread, because the
//! critical sections reach it (or the C library's area) by *thread pointer + one process-wide offset*.
//! Rust's `thread_local!` promises that only in executables, not in shared libraries that are loaded
//! late; the block is therefore laid down in assembly and found by the initial-exec model, which the
//! loader either satisfies for all threads or refuses the library.

#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
#[path = "thread_aarch64.rs"]
mod arch;
#[cfg(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "thread_portable.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
#[path = "thread_x86_64.rs"]
mod arch;

use std::ptr;

pub(crate) use arch::{libc_rseq, own_offset, shared_offset, token};

/// The thread's block. The image every thread starts with is the assembly in the files of the
/// architectures; this declaration must match it.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Block {
    /// An rseq area of our own, registered if the C library has registered none.
    pub(crate) area: super::rseq::Area,
    /// How many bytes of it are registered.
    pub(crate) registered: u32,
    /// One more than the CPU on which this thread last took an ID in a slow path; 0 for none.
    pub(crate) came_from: u32,
    /// The kernel's `errno` once it has refused to register this thread.
    pub(crate) refused: u32,
    /// The index hint of the atomic source.
    pub(crate) hint: u32,
    /// Operations left until the hint is read again.
    pub(crate) hint_left: u32,
}

/// What the assembly in the files of the architectures lays down.
#[cfg(not(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64")))))]
const _: () = assert!(size_of::<Block>() == 128 && std::mem::offset_of!(Block, area) == 0);

/// The address of the calling thread's block.
pub(crate) fn own() -> *mut Block {
    at(own_offset()).cast()
}

/// The address at `offset` bytes from the thread pointer.
pub(crate) fn at(offset: isize) -> *mut u8 {
    ptr::with_exposed_provenance_mut(arch::pointer().wrapping_add_signed(offset))
}

/// What the C library says about its rseq areas: the symbols `__rseq_offset` and `__rseq_size`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LibcRseq {
    /// From the thread pointer to the area, in bytes.
    pub(crate) offset: isize,
    /// The size the library promises in bytes; 0 if it did not register.
    pub(crate) size: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_starts_with_the_same_image_in_a_place_of_its_own() {
        let look = || {
            // SAFETY: the block is this thread's own and nobody writes to it meanwhile.
            let block = unsafe { &*own() };
            assert_eq!(own() as usize % align_of::<Block>(), 0);
            assert_eq!((block.came_from, block.refused, block.registered), (0, 0, 0));
            own() as usize
        };
        let here = look();
        let there = std::thread::spawn(look).join().expect("no panic");
        assert_ne!(here, there);
    }
}
