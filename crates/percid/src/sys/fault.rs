//! The handler of invalid memory accesses (SIGSEGV): installing one, and passing on what is not for it.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// The code of a fault at memory that is mapped and may not be accessed so (`asm-generic/siginfo.h`).
pub(crate) const ACCESS_ERROR: i32 = 2;

/// What a handler of ours does: given the code and the address of a fault, answers whether the access may
/// be tried again.
pub(crate) type Catch = fn(code: i32, address: usize) -> bool;

/// What was installed before ours. Written once, before [`STATE`] becomes [`INSTALLED`] and before our
/// handler can be called.
struct Previous(UnsafeCell<MaybeUninit<(libc::sigaction, Catch)>>);

// SAFETY: written by one thread, the one that takes STATE from NONE to INSTALLING; read only after
// that (see `install`).
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::uninit()));

static STATE: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
const INSTALLING: u32 = 1;
const INSTALLED: u32 = 2;

/// Installs the handler, at the first call. Answers whether it is the process's handler now: not if another
/// was installed later, or another thread is installing it at this moment.
pub(crate) fn install(catch: Catch) -> bool {
    match STATE.compare_exchange(NONE, INSTALLING, Acquire, Acquire) {
        Ok(_) => {
            let done = install_first(catch);
            STATE.store(if done { INSTALLED } else { NONE }, Release);
            done
        }
        Err(state) => state == INSTALLED && is_ours(),
    }
}

fn install_first(catch: Catch) -> bool {
    let Some(previous) = action() else { return false };
    // SAFETY: only one thread gets here, and no handler reads it yet.
    unsafe { (*PREVIOUS.0.get()).write((previous, catch)) };
    // SAFETY: zero is a valid value of the structure.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handler as *const () as usize;
    // On the alternate stack where a thread has one, as the handler before expects it.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // No other handler may interrupt ours: an armed page that it touched would be fatal, because the signal
    // is blocked meanwhile.
    // SAFETY: the mask is a valid place.
    unsafe { libc::sigfillset(&mut ours.sa_mask) };
    // SAFETY: the handler is async-signal-safe, and passes on what is not for it.
    unsafe { libc::sigaction(libc::SIGSEGV, &ours, ptr::null_mut()) == 0 }
}

fn is_ours() -> bool {
    action().is_some_and(|action| action.sa_sigaction == handler as *const () as usize)
}

fn action() -> Option<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: asks only; the place is valid.
    let done = unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call succeeded, so it filled the structure.
    (done == 0).then(|| unsafe { action.assume_init() })
}

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: written before this handler was installed, and never again.
    let (previous, catch) = unsafe { (*PREVIOUS.0.get()).assume_init_ref() };
    // SAFETY: the kernel hands over valid information; the signal carries an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if !super::preserving_errno(|| catch(code, address)) {
        pass_on(previous, signal, info, context);
    }
}

/// Does what would have been done without our handler.
fn pass_on(
    previous: &libc::sigaction,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let action = previous.sa_sigaction;
    // A fault cannot be ignored: the kernel ends the process then too.
    if action == libc::SIG_DFL || action == libc::SIG_IGN {
        return die(signal, info);
    }
    mask_as_before(previous, signal, context);
    if previous.sa_flags & libc::SA_SIGINFO != 0 {
        type Full = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
        // SAFETY: whoever installed it with this flag gave a function of this type.
        unsafe { std::mem::transmute::<usize, Full>(action)(signal, info, context) }
    } else {
        // SAFETY: as above, without the flag.
        unsafe { std::mem::transmute::<usize, extern "C" fn(i32)>(action)(signal) }
    }
}

/// Lets the signal have its default effect: the access is made again, faults again, and nobody handles it.
/// A signal that was sent by hand does not come again by itself.
fn die(signal: i32, info: *mut libc::siginfo_t) {
    // SAFETY: zero is a valid value; the default action takes no function.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &default, ptr::null_mut());
    }
    // SAFETY: as in `handler`.
    if unsafe { (*info).si_code } <= 0 {
        // SAFETY: sends a signal to this thread, which blocks it until the handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// Blocks what the handler before would have had blocked: what was blocked where the fault happened, and
/// what it asked for.
fn mask_as_before(previous: &libc::sigaction, signal: i32, context: *mut libc::c_void) {
    // SAFETY: the third argument of such a handler is the interrupted context.
    let mut mask = unsafe { (*context.cast::<libc::ucontext_t>()).uc_sigmask };
    // SAFETY: the sets are valid, signal numbers too.
    unsafe {
        for other in 1..=64 {
            if libc::sigismember(&previous.sa_mask, other) == 1 {
                libc::sigaddset(&mut mask, other);
            }
        }
        if previous.sa_flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut mask, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut());
    }
}

/// Lets other threads run; async-signal-safe.
pub(crate) fn pause() {
    // SAFETY: the call takes nothing.
    unsafe { libc::sched_yield() };
}
