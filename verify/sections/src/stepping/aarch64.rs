//! 64-bit Arm: planted traps.

use std::arch::asm;
use std::sync::Mutex;

use crate::descriptors::Descriptor;

/// `brk #0`.
const TRAP: u32 = 0xd420_0000;
/// The bytes of an instruction.
const STEP: usize = 4;
/// Instructions in front of a section, which declare it.
const IN_FRONT: usize = 3;

/// The places that are traps now, and what belongs there.
static PLANTED: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

pub(super) fn place(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.pc as usize
}

pub(super) fn go_to(context: &mut libc::ucontext_t, place: usize) {
    context.uc_mcontext.pc = place as u64;
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
    let first = section.start - IN_FRONT * STEP;
    for place in (first..=section.start + section.length).step_by(STEP) {
        planted.push((place, read(place)));
        write(place, TRAP);
    }
}

fn read(place: usize) -> u32 {
    // SAFETY: an instruction of this program.
    unsafe { std::ptr::with_exposed_provenance::<u32>(place).read_volatile() }
}

/// Changes an instruction of this program, which only this thread executes.
fn write(place: usize, instruction: u32) {
    const PAGE: usize = 4096;
    let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(place & !(PAGE - 1));
    // SAFETY: the page is part of the program; the processor is told what has changed.
    unsafe {
        libc::mprotect(page, PAGE, access);
        std::ptr::with_exposed_provenance_mut::<u32>(place).write_volatile(instruction);
        asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) place);
    }
}
