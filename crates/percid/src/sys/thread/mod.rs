//! percid's own block of thread-local storage, and where the C library keeps its rseq area.
//!
//! The block must lie at the same distance from the thread pointer in every thread, because the
//! critical sections reach it (or the C library's area) by *thread pointer + one process-wide
//! offset*. Rust's `thread_local!` promises that only in executables, not in shared libraries that
//! are loaded late; the block is therefore laid down in assembly and found by the initial-exec
//! model, which the loader either satisfies for all threads or refuses the library.

#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
#[path = "aarch64.rs"]
mod arch;
#[cfg(all(target_arch = "riscv64", not(percid_portable)))]
#[path = "riscv64.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
#[path = "x86_64.rs"]
mod arch;
mod block;
#[allow(dead_code, reason = "only where there are no sections")]
mod portable;

without_sections! {
    use portable as arch;
}

use std::ptr;

pub(crate) use arch::{own_offset, token};
pub(crate) use block::Block;
use block::LibcRseq;

/// The address of the calling thread's block.
#[inline(always)]
pub(crate) fn own() -> *mut Block {
    at(own_offset()).cast()
}

/// The address at `offset` bytes from the thread pointer.
#[inline(always)]
pub(crate) fn at(offset: isize) -> *mut u8 {
    ptr::with_exposed_provenance_mut(arch::pointer().wrapping_add_signed(offset))
}

/// Returns what the C library says about its rseq areas; `None` if it has none: a weak reference is
/// null then.
pub(crate) fn libc_rseq() -> Option<LibcRseq> {
    let (offset, size) = arch::libc_rseq_symbols();
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: the symbols exist, with the documented types, and are constant after start-up.
    Some(unsafe { LibcRseq { offset: *offset, size: *size } })
}

/// From the thread pointer to the thread-local `__rseq_abi`; `None` if no library of the program
/// defines it.
///
/// Linkers make different things of a weak reference to thread-local storage that is not defined:
/// zero, or what zero would be as an address in it. Whatever it is, it is the same for another name
/// that is not defined. The dynamic loader of musl follows such references without looking.
pub(crate) fn shared_offset() -> Option<isize> {
    let (shared, undefined) = arch::shared_references()?;
    (shared != undefined).then_some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_starts_with_the_same_image_in_a_place_of_its_own() {
        let look = || {
            // SAFETY: the block is this thread's own and no thread writes to it meanwhile.
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
