//! Functions of a runtime that a program may be linked with: a weak reference is null without it.

/// Returns the address of a function as `usize`, from the global offset table; 0 if the program
/// has no such function.
#[cfg(target_arch = "x86_64")]
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: it reads the entry that the linker creates for the name.
        unsafe {
            std::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        address
    }};
}

/// Returns the address of a function, like the macro for x86-64.
#[cfg(target_arch = "aarch64")]
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: it reads the entry that the linker creates for the name.
        unsafe {
            std::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        address
    }};
}

/// Returns the address of a function, like the macro for x86-64.
#[cfg(target_arch = "riscv64")]
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: it reads the entry that the linker creates for the name.
        unsafe {
            std::arch::asm!(
                concat!(".weak ", $name),
                concat!("lga {}, ", $name),
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        address
    }};
}

/// Returns 0: no assembly is known for this architecture, so no such function is found.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
macro_rules! weak {
    ($name:literal) => {
        0_usize
    };
}

pub(crate) use weak;
