//! Reading memory whose last contents were values of any type.
//!
//! Some bytes of a value, its padding, may be uninitialised in Rust's memory model. A load of them
//! is undefined behaviour, atomic or not. An instruction of the processor reads an ordinary number
//! there.

with_sections! {
    /// Returns `true` if the word at an address of an open slot is certainly zero. Reading a page
    /// that was never touched does not allocate it.
    pub(super) fn is_zero(address: usize) -> bool {
        let word: u64;
        // SAFETY: the word is readable, and nothing is written.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            std::arch::asm!("mov {}, qword ptr [{}]", out(reg) word, in(reg) address,
                options(nostack, preserves_flags, readonly));
            #[cfg(target_arch = "aarch64")]
            std::arch::asm!("ldr {}, [{}]", out(reg) word, in(reg) address,
                options(nostack, preserves_flags, readonly));
            #[cfg(target_arch = "riscv64")]
            std::arch::asm!("ld {}, 0({})", out(reg) word, in(reg) address,
                options(nostack, preserves_flags, readonly));
        }
        word == 0
    }
}

without_sections! {
    /// Returns `false` always: without assembly percid cannot read the word.
    pub(super) fn is_zero(_address: usize) -> bool {
        false
    }
}
