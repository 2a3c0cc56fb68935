//! Thread-local storage on x86-64.

use std::arch::{asm, global_asm};

use super::block::LibcRseq;

// The symbol carries the version, so that two versions of percid in one program do not collide.
global_asm!(
    ".pushsection .tdata.percid_0_1, \"awT\", @progbits",
    ".balign 64",
    ".hidden percid_0_1_thread",
    ".globl percid_0_1_thread",
    ".type percid_0_1_thread, @object",
    ".size percid_0_1_thread, 128",
    "percid_0_1_thread:",
    ".long 0, -1",       // cpu_id_start, cpu_id: not registered
    ".quad 0",           // rseq_cs
    ".long 0, 0, -1, 0", // flags, node_id, mm_cid: none
    ".zero 96",
    ".popsection",
);

/// The thread pointer.
#[inline(always)]
pub(crate) fn pointer() -> usize {
    let pointer;
    // SAFETY: the ABI stores the thread pointer at its own address.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer,
            options(nostack, preserves_flags, readonly));
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
        asm!("mov {}, qword ptr [rip + percid_0_1_thread@gottpoff]", out(reg) offset,
            options(nostack, preserves_flags, readonly));
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
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
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

/// From the thread pointer to the thread-local `__rseq_abi`; `None` if no library of the program
/// defines it.
///
/// Linkers make different things of a weak reference to thread-local storage that is not defined:
/// zero, or what zero would be as an address in it. Whatever it is, it is the same for another name
/// that is not defined. The dynamic loader of musl follows such references without looking.
#[cfg(target_env = "gnu")]
pub(crate) fn shared_offset() -> Option<isize> {
    let (shared, nobodys): (isize, isize);
    // SAFETY: reads two slots of the global offset table that the linker or loader has filled, or
    // what the linker has put in their place.
    unsafe {
        asm!(
            ".weak __rseq_abi",
            ".type __rseq_abi, @tls_object",
            ".weak percid_0_1_nobodys",
            ".type percid_0_1_nobodys, @tls_object",
            "mov {shared}, qword ptr [rip + __rseq_abi@gottpoff]",
            "mov {nobodys}, qword ptr [rip + percid_0_1_nobodys@gottpoff]",
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
