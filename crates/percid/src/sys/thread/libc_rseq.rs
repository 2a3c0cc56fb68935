//! Where the C library keeps its rseq area, and where another library does.

use super::arch;

/// What the C library says about its rseq areas: the symbols `__rseq_offset` and `__rseq_size`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LibcRseq {
    /// From the thread pointer to the area, in bytes.
    pub(crate) offset: isize,
    /// The size the library promises in bytes; 0 if it did not register.
    pub(crate) size: u32,
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
