//! The kernel's word: the area that the C library has registered for this thread, read as it is.

use std::sync::atomic::{AtomicU32, Ordering};

unsafe extern "C" {
    /// The offset of the area from the thread pointer.
    static __rseq_offset: isize;
    /// The registered size of the area; 0 if it is not registered.
    static __rseq_size: u32;
}

/// Bytes from the area's beginning, as the kernel's interface has them.
const CPU_ID: usize = 4;
const MM_CID: usize = 24;

/// Returns `true` if the kernel writes `mm_cid` for this thread.
pub(crate) fn has_ids() -> bool {
    // The library's announcement may be capped at the first 20 bytes, though it registers 32.
    const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;
    // SAFETY: takes a number, returns one; the size is set before `main`.
    let (features, registered) = unsafe { (libc::getauxval(AT_RSEQ_FEATURE_SIZE), __rseq_size) };
    registered != 0 && features as usize >= MM_CID + 4
}

/// Returns the concurrency ID that the kernel gave this thread.
pub(crate) fn mm_cid() -> u32 {
    word(MM_CID)
}

/// Returns the CPU that this thread runs on.
pub(crate) fn cpu() -> u32 {
    word(CPU_ID)
}

fn word(offset: usize) -> u32 {
    // SAFETY: the area lies at this offset from the thread pointer for as long as the thread lives,
    // is 32 bytes long, and the kernel writes it only between two instructions of this thread.
    unsafe {
        let area = thread_pointer().offset(__rseq_offset);
        (*area.add(offset).cast::<AtomicU32>()).load(Ordering::Relaxed)
    }
}

fn thread_pointer() -> *const u8 {
    let pointer;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of the thread's control block is its own address.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
