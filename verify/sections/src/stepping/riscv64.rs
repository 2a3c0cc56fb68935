//! 64-bit RISC-V: planted traps.

use std::arch::asm;
use std::sync::Mutex;

use crate::descriptors::Descriptor;

/// `c.ebreak`, as long as the shortest instruction.
const TRAP: u16 = 0x9002;
/// The program counter among the registers of a context.
const PLACE: usize = 0;

/// The places that are traps now, and what belongs there.
static PLANTED: Mutex<Vec<(usize, u16)>> = Mutex::new(Vec::new());

pub(super) fn place(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.__gregs[PLACE] as usize
}

pub(super) fn go_to(context: &mut libc::ucontext_t, place: usize) {
    context.uc_mcontext.__gregs[PLACE] = place as libc::c_ulong;
}

/// The thread has come to a trap: the instruction comes back.
pub(super) fn arrived(context: &mut libc::ucontext_t) {
    let here = place(context);
    let planted = PLANTED.lock();
    let Some(mut planted) = planted.ok() else { return };
    if let Some(index) = planted.iter().position(|&(place, _)| place == here) {
        let (_, original) = planted.swap_remove(index);
        write(here, original);
    }
}

pub(super) fn end(_: &mut libc::ucontext_t) {
    let planted = PLANTED.lock();
    let Some(mut planted) = planted.ok() else { return };
    for (place, original) in planted.drain(..) {
        write(place, original);
    }
}

pub(super) fn step_through(section: &Descriptor, call: &mut dyn FnMut()) {
    plant(section);
    call();
    // SAFETY: all zeros is a context, and it is not looked at.
    end(&mut unsafe { std::mem::zeroed() });
}

fn plant(section: &Descriptor) {
    let mut planted = PLANTED.lock().expect("no panic");
    let behind = section.start + section.length;
    let inside = instructions(section).map(|(place, _)| place);
    for place in in_front(section.start).into_iter().chain(inside).chain([behind]) {
        planted.push((place, read(place)));
        write(place, TRAP);
    }
}

/// The instructions of a section, and where each is.
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

/// Where the three instructions in front of a section are, which declare it: `auipc` and `addi`,
/// then `sd` at 8 from a register, in four bytes or two.
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

fn read(place: usize) -> u16 {
    // SAFETY: a part of an instruction of this program.
    unsafe { std::ptr::with_exposed_provenance::<u16>(place).read_volatile() }
}

/// Changes an instruction of this program, which only this thread executes.
fn write(place: usize, instruction: u16) {
    const PAGE: usize = 4096;
    let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(place & !(PAGE - 1));
    // SAFETY: the page is part of the program; the processor is told that something has changed.
    unsafe {
        libc::mprotect(page, PAGE, access);
        std::ptr::with_exposed_provenance_mut::<u16>(place).write_volatile(instruction);
        asm!("fence.i");
    }
}
