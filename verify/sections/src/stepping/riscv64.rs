//! 64-bit RISC-V: planted traps.

use std::arch::asm;

use super::planted::read;
use crate::descriptors::Descriptor;

/// The shortest instruction.
pub(super) type Code = u16;
/// `c.ebreak`.
pub(super) const TRAP: Code = 0x9002;
/// The program counter among the registers of a context.
const PLACE: usize = 0;

pub(super) fn place(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.__gregs[PLACE] as usize
}

pub(super) fn go_to(context: &mut libc::ucontext_t, place: usize) {
    context.uc_mcontext.__gregs[PLACE] = place as libc::c_ulong;
}

/// Returns the instructions of a section, the three before it, which declare it, and the one after
/// it.
pub(super) fn places(section: &Descriptor) -> impl Iterator<Item = usize> {
    let inside = instructions(section).map(|(place, _)| place);
    let behind = section.start + section.length;
    in_front(section.start).into_iter().chain(inside).chain([behind])
}

/// Returns the instructions of a section with their addresses.
pub(crate) fn instructions(section: &Descriptor) -> impl Iterator<Item = (usize, u32)> {
    let Descriptor { start, length, .. } = *section;
    let mut place = start;
    std::iter::from_fn(move || {
        let here = place;
        let low = (here < start + length).then(|| read(here))?;
        let is_whole = low & 3 == 3;
        place += if is_whole { 4 } else { 2 };
        let high = if is_whole { read(here + 2) } else { 0 };
        Some((here, u32::from(low) | u32::from(high) << 16))
    })
}

/// Returns the addresses of the three instructions before a section, which declare it: `auipc` and
/// `addi`, then `sd` at 8 from a register, in four bytes or two.
fn in_front(start: usize) -> [usize; 3] {
    let whole = |place| u32::from(read(place)) | u32::from(read(place + 2)) << 16;
    let opcode = |place, funct| whole(place) & 0x707f == funct;
    let is_declared = |store: usize| {
        whole(store - 8) & 0x7f == 0x17
            && opcode(store - 4, 0x13)
            && (store + 2 == start || whole(store) & 0xfe00_7fff == 0x3423)
    };
    let store = [start - 2, start - 4].into_iter().find(|&store| is_declared(store));
    let store = store.unwrap_or_else(|| panic!("what stands in front of {start:#x}?"));
    [store - 8, store - 4, store]
}

/// # Safety
///
/// The place is one of this program's instructions.
pub(super) unsafe fn tell_processor(_: usize) {
    // SAFETY: the instruction only synchronises the processor's view of the code.
    unsafe { asm!("fence.i") };
}
