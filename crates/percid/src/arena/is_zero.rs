//! Looking at memory whose last contents were values of any type.
//!
//! Some bytes of a value, its padding, may have no value that Rust's memory model knows of, and a
//! load of them is undefined behaviour, atomic or not. What an instruction of the processor finds
//! there is a number like any other.

with_sections! {
    /// Whether the word at an address of an open slot is zero for certain. A page that was never
    /// touched does not cost memory by it.
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
    /// As its twin, where percid has no assembly: nothing is certain.
    pub(super) fn is_zero(_address: usize) -> bool {
        false
    }
}
