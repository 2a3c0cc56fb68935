//! x86-64: the trap flag.

use std::arch::asm;

use crate::descriptors::Descriptor;

const PLACE: usize = libc::REG_RIP as usize;
const FLAGS: usize = libc::REG_EFL as usize;
const TRAP: i64 = 0x100;

pub(super) fn place(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.gregs[PLACE] as usize
}

pub(super) fn go_to(context: &mut libc::ucontext_t, place: usize) {
    context.uc_mcontext.gregs[PLACE] = place as i64;
}

pub(super) fn arrived(_: &mut libc::ucontext_t) {}

pub(super) fn end(context: &mut libc::ucontext_t) {
    context.uc_mcontext.gregs[FLAGS] &= !TRAP;
}

extern "C" fn enter(call: &mut &mut dyn FnMut()) {
    call();
}

pub(super) fn step_through(_: &Descriptor, mut call: &mut dyn FnMut()) {
    // SAFETY: a call of a function, with a flag set that traps after each instruction of it; the
    // handler changes nothing but what `act` does. The stack is aligned and the red zone is not
    // used.
    unsafe {
        asm!(
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "popfq",
            "call {enter}",
            "pushfq",
            "and qword ptr [rsp], -0x101",
            "popfq",
            enter = sym enter,
            in("rdi") &raw mut call,
            clobber_abi("C"),
        );
    }
}
