//! Thread-local storage on 64-bit RISC-V.

use std::arch::asm;

/// Returns the thread pointer.
#[inline(always)]
pub(crate) fn pointer() -> usize {
    let pointer;
    // SAFETY: reads a register that the ABI reserves for the thread pointer.
    unsafe {
        asm!("mv {}, tp", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}

/// Returns a number that no other living thread has; not 0 and even.
#[inline(always)]
pub(crate) fn token() -> usize {
    pointer()
}

/// Returns the offset from the thread pointer to percid's block; the same in every thread.
pub(crate) fn own_offset() -> isize {
    let offset;
    // SAFETY: reads a slot of the global offset table that the loader has filled.
    unsafe {
        asm!("la.tls.ie {}, percid_0_1_thread", out(reg) offset,
            options(nostack, preserves_flags, readonly));
    }
    offset
}

/// Returns the addresses of the C library's rseq symbols, offset and size; null if it has none.
pub(super) fn libc_rseq_symbols() -> (*const isize, *const u32) {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: reads two slots of the global offset table that the linker or loader has filled.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "lga {offset}, __rseq_offset",
            "lga {size}, __rseq_size",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, readonly)
        );
    }
    (offset, size)
}

/// Returns the offsets from the thread pointer to which the references to `__rseq_abi` and to an
/// undefined name resolve.
#[cfg(target_env = "gnu")]
pub(super) fn shared_references() -> Option<(isize, isize)> {
    let (shared, undefined): (isize, isize);
    // SAFETY: reads two slots of the global offset table that the linker or loader has filled, or
    // the values that the linker has put in their place.
    unsafe {
        asm!(
            ".weak __rseq_abi",
            ".type __rseq_abi, @tls_object",
            ".weak percid_0_1_undefined",
            ".type percid_0_1_undefined, @tls_object",
            "la.tls.ie {shared}, __rseq_abi",
            "la.tls.ie {undefined}, percid_0_1_undefined",
            shared = out(reg) shared,
            undefined = out(reg) undefined,
            options(nostack, preserves_flags, readonly)
        );
    }
    Some((shared, undefined))
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn shared_references() -> Option<(isize, isize)> {
    None
}
