//! How the guest ends the machine.

use std::io;

use crate::protocol::EXIT_PORT;

/// Ends the machine by writing `value` to the agreed I/O port, whereupon QEMU
/// ends with the status `value * 2 + 1`. Returns only if that was not possible.
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

/// Only x86-64 machines are made.
#[cfg(not(target_arch = "x86_64"))]
pub fn end_machine(value: u32) -> io::Error {
    let what = format!("no I/O port {EXIT_PORT:#x} to write {value} to on this architecture");
    io::Error::new(io::ErrorKind::Unsupported, what)
}
