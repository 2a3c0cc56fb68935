//! A section that waits, for 64-bit Arm: see [`waiting`](super::waiting).

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
    // its signature.
    unsafe {
        asm!(
            "adr {work}, 2f",
            "str {work}, [{shared}, #{start}]",
            "adr {outcome}, 3f",
            "sub {outcome}, {outcome}, {work}",
            "and {outcome}, {outcome}, {length_mask}",
            "str {outcome}, [{shared}, #{length}]",
            "adr {work}, 4f",
            "str {work}, [{shared}, #{abort}]",
            "mov {outcome}, #0",
            "str {shared}, [{area}, #8]",
            "2:",
            "ldr {work:w}, [{area}, #4]",
            "add {work}, {work}, #1",
            "orr {work}, {round}, {work}, lsl #32",
            "str {work}, [{shared}, #{inside}]",
            "5:",
            "ldr {work:w}, [{shared}, #{flag}]",
            "cmp {work:w}, {round:w}",
            "b.eq 6f",
            "subs {tries}, {tries}, #1",
            "b.ne 5b",
            "3:",
            "b 7f",
            "6:",
            "mov {outcome}, #{saw_flag}",
            "b 7f",
            ".inst 0xd428bc00",
            "4:",
            "mov {outcome}, #{aborted}",
            "7:",
            "str xzr, [{area}, #8]",
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
