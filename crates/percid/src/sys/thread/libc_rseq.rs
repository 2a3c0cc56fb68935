//! The location of the rseq area of the C library, and of another library.

use super::arch;

/// The C library's description of its rseq areas: the symbols `__rseq_offset` and `__rseq_size`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LibcRseq {
    /// Offset from the thread pointer to the area, in bytes.
    pub(crate) offset: isize,
    /// The size in bytes that the library guarantees; 0 if it did not register.
    pub(crate) size: u32,
}

/// Returns the C library's description of its rseq areas; `None` if it has none: a weak reference
/// is null then.
pub(crate) fn libc_rseq() -> Option<LibcRseq> {
    let (offset, size) = arch::libc_rseq_symbols();
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: the symbols exist, with the documented types, and are constant after start-up.
    Some(unsafe { LibcRseq { offset: *offset, size: *size } })
}

/// Returns the offset from the thread pointer to the thread-local `__rseq_abi`; `None` if no
/// library of the program defines it.
///
/// Linkers resolve a weak reference to undefined thread-local storage differently: to zero, or to
/// the value of zero as an address in it. Either way the result is the same for another undefined
/// name. The dynamic loader of musl follows such references without a check.
pub(crate) fn shared_offset() -> Option<isize> {
    let (shared, undefined) = arch::shared_references()?;
    (shared != undefined).then_some(shared)
}
