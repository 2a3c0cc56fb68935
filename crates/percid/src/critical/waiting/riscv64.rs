//! A section that waits, for 64-bit RISC-V: see [`waiting`](super::waiting).

use std::arch::asm;
use std::mem::offset_of;

use super::rendezvous::{ABORTED, Rendezvous, SAW_FLAG};
use crate::critical::fast_path::FAST_PATH;
use crate::sys::thread;

/// # Safety
///
/// The calling thread's rseq area is registered and lies at [`FAST_PATH`]'s offset.
pub(super) unsafe fn enter(shared: &Rendezvous, round: u32, length_mask: u64, tries: u64) -> u64 {
    let outcome;
    // SAFETY: the section writes only to `shared` and to `rseq_cs`. `rseq_cs` is cleared on every
    // exit, so the kernel never reads the descriptor after `shared` is gone. The abort pad follows
    // its signature. It lies among the pads of the other sections, so that the linker keeps the
    // four bytes of the signature aligned.
    unsafe {
        asm!(
            "lla {work}, 2f",
            "sd {work}, {start}({shared})",
            "lla {outcome}, 3f",
            "sub {outcome}, {outcome}, {work}",
            "and {outcome}, {outcome}, {length_mask}",
            "sd {outcome}, {length}({shared})",
            "lla {work}, 4f",
            "sd {work}, {abort}({shared})",
            "li {outcome}, 0",
            "sd {shared}, 8({area})",
            "2:",
            "lwu {work}, 4({area})",
            "addi {work}, {work}, 1",
            "slli {work}, {work}, 32",
            "or {work}, {work}, {round}",
            "sd {work}, {inside}({shared})",
            "5:",
            "lwu {work}, {flag}({shared})",
            "beq {work}, {round}, 6f",
            "addi {tries}, {tries}, -1",
            "bnez {tries}, 5b",
            "3:",
            "j 7f",
            "6:",
            "li {outcome}, {saw_flag}",
            "j 7f",
            ".pushsection .text.rseq_abort, \"ax\", @progbits",
            ".option push",
            ".option norelax",
            ".balign 4",
            ".4byte 0xf1401073", // the signature: csrw mhartid, zero
            "4:",
            "jump 8f, {work}",
            ".option pop",
            ".popsection",
            "8:",
            "li {outcome}, {aborted}",
            "7:",
            "sd zero, 8({area})",
            shared = in(reg) shared,
            area = in(reg) thread::at(FAST_PATH.area()),
            round = in(reg) u64::from(round),
            length_mask = in(reg) length_mask,
            tries = inout(reg) tries => _,
            work = out(reg) _,
            outcome = out(reg) outcome,
            start = const offset_of!(Rendezvous, start),
            length = const offset_of!(Rendezvous, length),
            abort = const offset_of!(Rendezvous, abort),
            inside = const offset_of!(Rendezvous, inside),
            flag = const offset_of!(Rendezvous, flag),
            aborted = const ABORTED,
            saw_flag = const SAW_FLAG,
            options(nostack)
        );
    }
    outcome
}
