//! Traps that are set in the code, for processors that user space cannot make trap after every
//! instruction.

use std::sync::Mutex;

use super::arch::{self, Code};
use crate::descriptors::Descriptor;

/// The places that are traps now, and what belongs there.
static PLANTED: Mutex<Vec<(usize, Code)>> = Mutex::new(Vec::new());

/// Handles a thread at a trap: restores the instruction.
pub(super) fn arrived(context: &mut libc::ucontext_t) {
    let here = arch::place(context);
    let planted = PLANTED.lock();
    let Some(mut planted) = planted.ok() else { return };
    if let Some(index) = planted.iter().position(|&(place, _)| place == here) {
        let (_, original) = planted.swap_remove(index);
        write(here, original);
    }
}

pub(super) fn end(_: &mut libc::ucontext_t) {
    take_back();
}

fn take_back() {
    let planted = PLANTED.lock();
    let Some(mut planted) = planted.ok() else { return };
    for (place, original) in planted.drain(..) {
        write(place, original);
    }
}

pub(super) fn step_through(section: &Descriptor, call: &mut dyn FnMut()) {
    plant(section);
    call();
    take_back();
}

fn plant(section: &Descriptor) {
    let mut planted = PLANTED.lock().expect("no panic");
    for place in arch::places(section) {
        planted.push((place, read(place)));
        write(place, arch::TRAP);
    }
}

pub(super) fn read(place: usize) -> Code {
    // SAFETY: an instruction of this program, or a part of one.
    unsafe { std::ptr::with_exposed_provenance::<Code>(place).read_volatile() }
}

/// Changes an instruction of this program, which only this thread executes.
fn write(place: usize, instruction: Code) {
    const PAGE: usize = 4096;
    let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(place & !(PAGE - 1));
    // SAFETY: the page is part of the program; the processor is informed of the change.
    unsafe {
        libc::mprotect(page, PAGE, access);
        std::ptr::with_exposed_provenance_mut::<Code>(place).write_volatile(instruction);
        arch::tell_processor(place);
    }
}
