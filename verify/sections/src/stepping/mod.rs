//! Stopping a thread at one instruction.
//!
//! x86-64: the processor traps after every instruction, so that all are counted, in every iteration
//! of a loop. On 64-bit Arm and RISC-V user space cannot request that: every instruction of the
//! section, the three before it and the one after it become traps, each until the thread reaches it
//! first.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(target_arch = "riscv64")]
#[path = "riscv64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;
#[cfg(not(target_arch = "x86_64"))]
mod planted;

#[cfg(target_arch = "x86_64")]
use arch as stops;
#[cfg(not(target_arch = "x86_64"))]
use planted as stops;

use crate::descriptors::Descriptor;
#[cfg(target_arch = "riscv64")]
pub(crate) use arch::instructions;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A thread that stands in front of an instruction.
#[derive(Debug)]
pub(crate) struct Stop<'a> {
    context: &'a mut libc::ucontext_t,
}

impl Stop<'_> {
    /// Returns the address of the instruction.
    pub(crate) fn place(&self) -> usize {
        arch::place(self.context)
    }

    /// Lets the thread go on elsewhere.
    pub(crate) fn go_to(&mut self, place: usize) {
        arch::go_to(self.context, place);
    }
}

/// The running operation, and the action at its stop.
struct Run<'a> {
    /// Number of instructions until the stop.
    left: usize,
    act: &'a mut dyn FnMut(&mut Stop<'_>),
    done: bool,
}

static RUN: AtomicPtr<Run<'static>> = AtomicPtr::new(std::ptr::null_mut());

/// Runs `call`, which comes through a section, and does `act` in front of the instruction of this
/// number. `false`: it has fewer.
///
/// `act` must not panic: it is done in a signal handler.
pub(crate) fn run(
    section: &Descriptor,
    call: &mut dyn FnMut(),
    number: usize,
    act: &mut dyn FnMut(&mut Stop<'_>),
) -> bool {
    let mut run = Run { left: number, act, done: false };
    RUN.store((&raw mut run).cast(), Relaxed);
    install();
    stops::step_through(section, call);
    RUN.store(std::ptr::null_mut(), Relaxed);
    run.done
}

fn install() {
    // SAFETY: a handler of the right kind, for a signal that nothing else here uses.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()), 0);
    }
}

extern "C" fn handler(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: `run` keeps it valid for as long as the thread is stepped, and waits during that
    // time.
    let run = unsafe { RUN.load(Relaxed).as_mut() };
    // SAFETY: the kernel's, for this handler alone.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let Some(run) = run.filter(|run| !run.done) else { return stops::end(context) };
    stops::arrived(context);
    if run.left > 0 {
        run.left -= 1;
        return;
    }
    run.done = true;
    stops::end(context);
    (run.act)(&mut Stop { context });
}
