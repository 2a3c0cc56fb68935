//! A section that waits, for x86-64: see [`waiting`](super::waiting).

use std::arch::asm;
use std::mem::offset_of;

use super::rendezvous::{ABORTED, Rendezvous, SAW_FLAG};
use crate::critical::fast_path::FAST_PATH;

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
            "lea {work}, [rip + 2f]",
            "mov qword ptr [{shared} + {start}], {work}",
            "lea {outcome}, [rip + 3f]",
            "sub {outcome}, {work}",
            "and {outcome}, {length_mask}",
            "mov qword ptr [{shared} + {length}], {outcome}",
            "lea {work}, [rip + 4f]",
            "mov qword ptr [{shared} + {abort}], {work}",
            "mov {outcome:e}, 0",
            "mov qword ptr fs:[{area} + 8], {shared}",
            "2:",
            "mov {work:e}, dword ptr fs:[{area} + 4]",
            "inc {work}",
            "shl {work}, 32",
            "or {work}, {round}",
            "mov qword ptr [{shared} + {inside}], {work}",
            "5:",
            "cmp dword ptr [{shared} + {flag}], {round:e}",
            "je 6f",
            "dec {tries}",
            "jnz 5b",
            "3:",
            "jmp 7f",
            "6:",
            "mov {outcome:e}, {saw_flag}",
            "jmp 7f",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "4:",
            "mov {outcome:e}, {aborted}",
            "7:",
            "mov qword ptr fs:[{area} + 8], 0",
            shared = in(reg) shared,
            area = in(reg) FAST_PATH.area(),
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
