//! 64-bit Arm: planted traps.

use std::arch::asm;

use crate::descriptors::Descriptor;

/// An instruction.
pub(super) type Code = u32;
/// `brk #0`.
pub(super) const TRAP: Code = 0xd420_0000;
/// The bytes of an instruction.
const STEP: usize = 4;
/// Instructions in front of a section, which declare it.
const IN_FRONT: usize = 3;

pub(super) fn place(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.pc as usize
}

pub(super) fn go_to(context: &mut libc::ucontext_t, place: usize) {
    context.uc_mcontext.pc = place as u64;
}

/// Returns the instructions of a section, the three before it, which declare it, and the one after
/// it.
pub(super) fn places(section: &Descriptor) -> impl Iterator<Item = usize> {
    let first = section.start - IN_FRONT * STEP;
    (first..=section.start + section.length).step_by(STEP)
}

/// # Safety
///
/// The place is one of this program's instructions.
pub(super) unsafe fn tell_processor(place: usize) {
    // SAFETY: by the caller.
    unsafe { asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) place) };
}
