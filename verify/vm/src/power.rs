//! The guest's way of ending the machine.

use std::io;

#[cfg(target_arch = "x86_64")]
use crate::protocol::EXIT_PORT;

/// Ends the machine by writing `value` to the agreed I/O port, on which QEMU ends with the status
/// `value * 2 + 1`. Returns only if that was not possible.
///
/// Outside a machine made by this harness the port is not ours to write to.
#[cfg(target_arch = "x86_64")]
pub fn end_machine(value: u32) -> io::Error {
    // SAFETY: plain system call on integers; opens four ports to this thread.
    if unsafe { libc::ioperm(EXIT_PORT.into(), 4, 1) } != 0 {
        return io::Error::last_os_error();
    }
    // SAFETY: the ports were opened above, and the device behind them touches
    // no memory of ours.
    unsafe {
        std::arch::asm!(
            "out dx, eax",
            in("dx") EXIT_PORT,
            in("eax") value,
            options(nomem, nostack, preserves_flags)
        );
    }
    io::Error::other("wrote to the exit port, and the machine still runs")
}

/// The register values of a semihosting call to end: the number of the call, and the two words that
/// its argument points to.
#[cfg(not(target_arch = "x86_64"))]
const EXIT: u64 = 0x18;
#[cfg(not(target_arch = "x86_64"))]
const APPLICATION_EXIT: u64 = 0x2_0026;

/// Ends the machine by a semihosting call, whereupon QEMU ends with the status that a write of
/// `value` to the port of x86-64 gives.
///
/// Outside a machine made by this harness the instruction is an illegal one.
#[cfg(target_arch = "aarch64")]
pub fn end_machine(value: u32) -> io::Error {
    let arguments: [u64; 2] = [APPLICATION_EXIT, u64::from(value * 2 + 1)];
    // SAFETY: the call reads the two words, which live through it, and writes no memory; it answers
    // in x0.
    unsafe {
        std::arch::asm!(
            "hlt #0xf000",
            inout("x0") EXIT => _,
            in("x1") &arguments,
            options(readonly, nostack, preserves_flags)
        );
    }
    io::Error::other("called the emulator to end, and the machine still runs")
}

/// Does the same as the function of the same name for Arm.
#[cfg(target_arch = "riscv64")]
pub fn end_machine(value: u32) -> io::Error {
    let arguments: [u64; 2] = [APPLICATION_EXIT, u64::from(value * 2 + 1)];
    // SAFETY: the call reads the two words, which live through it, and writes no memory; it answers
    // in a0. The emulator requires the three instructions in their long form and on one page.
    unsafe {
        std::arch::asm!(
            ".option push",
            ".option norvc",
            ".balign 16",
            "slli zero, zero, 0x1f",
            "ebreak",
            "srai zero, zero, 7",
            ".option pop",
            inout("a0") EXIT => _,
            in("a1") &arguments,
            options(readonly, nostack)
        );
    }
    io::Error::other("called the emulator to end, and the machine still runs")
}
