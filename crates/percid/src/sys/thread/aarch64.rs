//! Thread-local storage on 64-bit Arm.

use std::arch::{asm, global_asm};

use super::block::LibcRseq;

// See `x86_64.rs`.
global_asm!(
    ".pushsection .tdata.percid_0_1, \"awT\", @progbits",
    ".balign 64",
    ".hidden percid_0_1_thread",
    ".globl percid_0_1_thread",
    ".type percid_0_1_thread, @object",
    ".size percid_0_1_thread, 128",
    "percid_0_1_thread:",
    ".long 0, -1",
    ".quad 0",
    ".long 0, 0, -1, 0",
    ".zero 96",
    ".popsection",
);

/// The thread pointer.
#[inline(always)]
pub(crate) fn pointer() -> usize {
    let pointer;
    // SAFETY: user space may read this register.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}

/// A number that no other living thread has; not 0 and even.
#[inline(always)]
pub(crate) fn token() -> usize {
    pointer()
}

/// From the thread pointer to percid's block; the same in every thread.
pub(crate) fn own_offset() -> isize {
    let offset;
    // SAFETY: reads a slot of the global offset table that the loader has filled.
    unsafe {
        asm!(
            "adrp {offset}, :gottprel:percid_0_1_thread",
            "ldr {offset}, [{offset}, :gottprel_lo12:percid_0_1_thread]",
            offset = out(reg) offset,
            options(nostack, preserves_flags, readonly)
        );
    }
    offset
}

/// The C library's rseq symbols; `None` if it has none: a weak reference is null then.
pub(crate) fn libc_rseq() -> Option<LibcRseq> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: reads two slots of the global offset table that the linker or loader has filled.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, readonly)
        );
    }
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: the symbols exist, with the documented types, and are constant after start-up.
    Some(unsafe { LibcRseq { offset: *offset, size: *size } })
}

/// From the thread pointer to the thread-local `__rseq_abi`; see `x86_64.rs`.
#[cfg(target_env = "gnu")]
pub(crate) fn shared_offset() -> Option<isize> {
    let (shared, nobodys): (isize, isize);
    // SAFETY: reads two slots of the global offset table that the linker or loader has filled, or
    // what the linker has put in their place.
    unsafe {
        asm!(
            ".weak __rseq_abi",
            ".type __rseq_abi, %tls_object",
            ".weak percid_0_1_nobodys",
            ".type percid_0_1_nobodys, %tls_object",
            "adrp {shared}, :gottprel:__rseq_abi",
            "ldr {shared}, [{shared}, :gottprel_lo12:__rseq_abi]",
            "adrp {nobodys}, :gottprel:percid_0_1_nobodys",
            "ldr {nobodys}, [{nobodys}, :gottprel_lo12:percid_0_1_nobodys]",
            shared = out(reg) shared,
            nobodys = out(reg) nobodys,
            options(nostack, preserves_flags, readonly)
        );
    }
    (shared != nobodys).then_some(shared)
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn shared_offset() -> Option<isize> {
    None
}
