//! The thread pointer.

/// Returns the address at `offset` bytes from the thread pointer.
#[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "for the sections of the others"))]
pub(crate) fn at(offset: isize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(pointer().wrapping_add_signed(offset))
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn pointer() -> usize {
    let pointer;
    // SAFETY: the ABI stores the thread pointer at its own address.
    unsafe { std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer) };
    pointer
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn pointer() -> usize {
    let pointer;
    // SAFETY: user space may read this register.
    unsafe { std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer) };
    pointer
}

#[cfg(target_arch = "riscv64")]
pub(crate) fn pointer() -> usize {
    let pointer;
    // SAFETY: reads a register that the ABI reserves for this.
    unsafe { std::arch::asm!("mv {}, tp", out(reg) pointer) };
    pointer
}
