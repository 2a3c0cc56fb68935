//! The parts that are specific to 64-bit Arm.

use std::ops::Range;

/// An instruction, or as much of one as a trap takes.
pub(super) type Trap = u32;
/// `brk #0`.
pub(super) const TRAP: Trap = 0xd420_0000;
/// The bytes of an instruction.
const STEP: u64 = 4;

/// `struct user_pt_regs`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Registers {
    pub(super) general: [u64; 31],
    pub(super) stack: u64,
    pub(super) place: u64,
    pub(super) state: u64,
}

/// Returns the addresses of instructions.
pub(super) fn instructions(range: Range<u64>) -> Vec<u64> {
    range.step_by(STEP as usize).collect()
}

/// Returns the instructions before a section, which declare it.
pub(super) fn in_front(start: u64) -> Vec<u64> {
    instructions(start - 3 * STEP..start)
}

/// Returns the target of the jump at a pad.
pub(super) fn target_of_jump(place: u64) -> Option<u64> {
    // SAFETY: an instruction of this program.
    let jump = unsafe { std::ptr::with_exposed_provenance::<u32>(place as usize).read_volatile() };
    // 26 bits with a sign, in instructions.
    let distance = i64::from((jump << 6) as i32 >> 6) * STEP as i64;
    (jump >> 26 == 0b000101).then(|| place.wrapping_add_signed(distance))
}
