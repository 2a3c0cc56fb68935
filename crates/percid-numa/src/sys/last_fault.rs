//! The last fault of each thread, in thread-local storage that a fault handler may use.
//!
//! In a shared library that is loaded late, Rust's `thread_local!` may allocate at a thread's first
//! use. So the variable is defined in assembly, with the initial-exec model: the loader either
//! provides it for all threads or refuses the library.

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(percid_portable)))]
use std::arch::{asm, global_asm};

/// A thread's last fault that no armed page explained; all zeros at first.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct LastFault {
    pub(crate) address: usize,
    /// The generation of arming at that time.
    pub(crate) generation: u32,
    /// Number of consecutive faults of the thread at this address and generation.
    pub(crate) repeats: u32,
}

// The symbol carries the version, so that two versions in one program do not collide.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(percid_portable)))]
global_asm!(
    ".pushsection .tbss.percid_numa_0_1, \"awT\", @nobits",
    ".balign 16",
    ".hidden percid_numa_0_1_last_fault",
    ".globl percid_numa_0_1_last_fault",
    ".type percid_numa_0_1_last_fault, @object",
    ".size percid_numa_0_1_last_fault, {size}",
    "percid_numa_0_1_last_fault:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<LastFault>(),
);

/// Returns the address of the calling thread's value.
#[cfg(all(target_arch = "x86_64", not(percid_portable)))]
pub(crate) fn own() -> *mut LastFault {
    let address: usize;
    // SAFETY: the ABI stores the thread pointer at the address that it points to; the loader has
    // filled the entry of the global offset table.
    unsafe {
        asm!(
            "mov {address}, qword ptr fs:[0]",
            "add {address}, qword ptr [rip + percid_numa_0_1_last_fault@gottpoff]",
            address = out(reg) address,
            options(nostack, readonly)
        );
    }
    std::ptr::with_exposed_provenance_mut(address)
}

/// Returns the address of the calling thread's value.
#[cfg(all(target_arch = "aarch64", not(percid_portable)))]
pub(crate) fn own() -> *mut LastFault {
    let address: usize;
    // SAFETY: user space may read the register; the loader has filled the entry of the global
    // offset table.
    unsafe {
        asm!(
            "mrs {pointer}, tpidr_el0",
            "adrp {address}, :gottprel:percid_numa_0_1_last_fault",
            "ldr {address}, [{address}, :gottprel_lo12:percid_numa_0_1_last_fault]",
            "add {address}, {address}, {pointer}",
            pointer = out(reg) _,
            address = out(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    std::ptr::with_exposed_provenance_mut(address)
}

/// Returns the address of the calling thread's value.
#[cfg(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn own() -> *mut LastFault {
    use std::cell::UnsafeCell;
    thread_local! {
        static OWN: UnsafeCell<LastFault> =
            const { UnsafeCell::new(LastFault { address: 0, generation: 0, repeats: 0 }) };
    }
    OWN.with(UnsafeCell::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_one_of_its_own_that_is_zero_at_first() {
        let look = || {
            // SAFETY: the value belongs to this thread.
            let own = unsafe { &mut *own() };
            assert!(std::ptr::from_ref(own).is_aligned());
            assert_eq!((own.address, own.generation, own.repeats), (0, 0, 0));
            (own.address, own.repeats) = (1, 2);
            std::ptr::from_ref(own).addr()
        };
        let here = std::thread::scope(|scope| {
            let there = scope.spawn(look);
            assert_ne!(look(), there.join().expect("no panic"));
            own()
        });
        // SAFETY: the value belongs to this thread.
        assert_eq!(unsafe { (*here).repeats }, 2);
    }
}
