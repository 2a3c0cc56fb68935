//! The parts that are specific to 64-bit RISC-V.

use std::ops::Range;

/// An instruction, or as much of one as a trap takes.
pub(super) type Trap = u16;
/// `c.ebreak`, as long as the shortest instruction.
pub(super) const TRAP: Trap = 0x9002;

/// `struct user_regs_struct`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Registers {
    pub(super) place: u64,
    pub(super) general: [u64; 31],
}

/// Returns the addresses of instructions, each of two bytes or four.
pub(super) fn instructions(range: Range<u64>) -> Vec<u64> {
    let length = |place| if half(place) & 3 == 3 { 4 } else { 2 };
    let next = |&place: &u64| Some(place + length(place)).filter(|next| range.contains(next));
    std::iter::successors(Some(range.start), next).collect()
}

/// Returns the instruction before a section, which declares it: `sd` at 8 from a register, in two
/// bytes or four. Those before it address the descriptor; `addi` is the last of them.
pub(super) fn in_front(start: u64) -> Vec<u64> {
    let is_declared = |store: u64| {
        let is_whole = store + 4 == start;
        let stores = !is_whole || whole(store) & 0xfe00_7fff == 0x3423;
        stores && whole(store - 4) & 0x707f == 0x13
    };
    [start - 2, start - 4].into_iter().filter(|&store| is_declared(store)).take(1).collect()
}

/// Returns the target of the two instructions of a jump at a pad: `auipc`, and `jalr` without a
/// link register.
pub(super) fn target_of_jump(place: u64) -> Option<u64> {
    let (upper, lower) = (whole(place), whole(place + 4));
    let register = upper >> 7 & 31;
    let is_jump = upper & 0x7f == 0x17 && lower & 0xf_ffff == register << 15 | 0x67;
    let distance = i64::from((upper & 0xffff_f000) as i32) + i64::from(lower as i32 >> 20);
    is_jump.then(|| place.wrapping_add_signed(distance))
}

fn whole(place: u64) -> u32 {
    u32::from(half(place)) | u32::from(half(place + 2)) << 16
}

fn half(place: u64) -> u16 {
    // SAFETY: a part of an instruction of this program.
    unsafe { std::ptr::with_exposed_provenance::<u16>(place as usize).read_volatile() }
}
