//! The handler of invalid memory accesses (SIGSEGV): its installation, and passing on faults that
//! are not percid's.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

/// The code of a fault at memory that is mapped without the right for this access
/// (`asm-generic/siginfo.h`).
pub(crate) const ACCESS_ERROR: i32 = 2;

/// The type of percid's handler: given the code and the address of a fault, it returns `true` if
/// the access may be retried.
pub(crate) type Catch = fn(code: i32, address: usize) -> bool;

/// The action that was installed before percid's handler, and percid's handler. Written once,
/// before [`INSTALLED`] is set and before the handler can be called.
struct Previous(UnsafeCell<MaybeUninit<(libc::sigaction, Catch)>>);

// SAFETY: one thread at a time writes it, before the handler is installed; only the handler reads
// it.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::uninit()));

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// `true` if the previous handler was called, which may happen only once if it has `SA_RESETHAND`.
static SPENT: AtomicBool = AtomicBool::new(false);

/// Returns the addresses of the handler's data; for data larger than a word, its first and last
/// byte.
pub(crate) fn places() -> [usize; 3] {
    let previous = (&raw const PREVIOUS).addr();
    [previous, previous + size_of::<Previous>() - 1, (&raw const SPENT).addr()]
}

/// Installs the handler at the first call. Returns `true` if it is the process's handler now;
/// another may have been installed later. Must be called by one thread at a time.
pub(crate) fn install(catch: Catch) -> bool {
    if !INSTALLED.load(Acquire) {
        INSTALLED.store(install_first(catch), Release);
    }
    is_installed()
}

/// Returns `true` if the process's handler is percid's.
pub(crate) fn is_installed() -> bool {
    action().is_some_and(|action| is_ours(&action))
}

fn install_first(catch: Catch) -> bool {
    let Some(previous) = action() else { return false };
    if is_ours(&previous) {
        // This is a child of `fork`, and a thread of the parent was between installing and
        // `INSTALLED`.
        return true;
    }
    // SAFETY: the caller ensures that only one thread gets here, and no handler reads it yet.
    unsafe { (*PREVIOUS.0.get()).write((previous, catch)) };
    // SAFETY: zero is a valid value of the structure.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = handler as *const () as usize;
    // Use the alternate stack if a thread has one, because the previous handler may need it. A
    // previous handler without this flag gets it too: the kernel chooses the stack before it is
    // known whose fault it is.
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // No other handler may interrupt this one: if it touched an armed page, that would be fatal,
    // because the signal is blocked then. SAFETY: the mask is a valid place.
    unsafe { libc::sigfillset(&mut new.sa_mask) };
    // SAFETY: the handler is async-signal-safe, and passes on faults that are not percid's.
    unsafe { libc::sigaction(libc::SIGSEGV, &new, ptr::null_mut()) == 0 }
}

fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == handler as *const () as usize
}

fn action() -> Option<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: the call only reads the action into a valid place.
    let done = unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call succeeded, so it filled the structure.
    (done == 0).then(|| unsafe { action.assume_init() })
}

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: it was written before this handler was installed, and never again.
    let (previous, catch) = unsafe { (*PREVIOUS.0.get()).assume_init_ref() };
    // SAFETY: the kernel passes valid information, and this signal carries an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if !super::preserving_errno(|| catch(code, address)) {
        pass_on(previous, signal, info, context);
    }
}

/// Does what the process would have done without percid's handler.
fn pass_on(
    previous: &libc::sigaction,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let action = previous.sa_sigaction;
    // SAFETY: `info` is the valid pointer that the kernel passed to `handler`.
    let sent = unsafe { (*info).si_code } <= 0;
    if action == libc::SIG_IGN && sent {
        return;
    }
    let once = previous.sa_flags & libc::SA_RESETHAND != 0;
    // A fault cannot be ignored: the kernel would end the process in that case too.
    let none = action == libc::SIG_DFL || action == libc::SIG_IGN;
    if none || once && SPENT.swap(true, Relaxed) {
        return die(signal, sent);
    }
    mask_as_before(previous, signal, context);
    if previous.sa_flags & libc::SA_SIGINFO != 0 {
        type Full = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
        // SAFETY: the flag is set, so the action is a function of this type.
        unsafe { std::mem::transmute::<usize, Full>(action)(signal, info, context) }
    } else {
        // SAFETY: without the flag, the action is a function of one argument.
        unsafe { std::mem::transmute::<usize, extern "C" fn(i32)>(action)(signal) }
    }
}

/// Restores the default action of the signal: the access is repeated, faults again, and is not
/// handled. A signal that was sent by a process does not repeat by itself.
fn die(signal: i32, sent: bool) {
    // SAFETY: zero is a valid value; the default action takes no function.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &default, ptr::null_mut());
    }
    if sent {
        // SAFETY: sends a signal to this thread, which blocks it until the handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// Blocks the signals that would have been blocked in the previous handler: those that were blocked
/// at the fault, and those that the handler requested.
fn mask_as_before(previous: &libc::sigaction, signal: i32, context: *mut libc::c_void) {
    // SAFETY: the third argument of a SIGINFO handler is the interrupted context.
    let mut mask = unsafe { (*context.cast::<libc::ucontext_t>()).uc_sigmask };
    // SAFETY: the sets and the signal numbers are valid.
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
    // SAFETY: the call has no arguments.
    unsafe { libc::sched_yield() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{errno, memory};
    use std::sync::atomic::AtomicI32;

    /// State of the handler: 1 if another signal could interrupt it, 0 if not, 2 before it ran.
    static OPEN: AtomicI32 = AtomicI32::new(2);

    /// Restores the rights, and changes `errno` like a call that fails.
    fn give_back(_: i32, address: usize) -> bool {
        let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the call only reads the mask into a valid place, which it fills.
        let is_open = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), blocked.as_mut_ptr());
            libc::sigismember(blocked.as_ptr(), libc::SIGUSR1) == 0
        };
        OPEN.store(i32::from(is_open), Relaxed);
        let page = memory::page_size();
        // SAFETY: the rights that the page of the test had.
        let done = unsafe { memory::protect(address & !(page - 1), page, 3) };
        // SAFETY: there is no such descriptor, so the call fails.
        unsafe { libc::close(-1) };
        done.is_ok()
    }

    /// Causes a fault. Returns 0 if it left no trace, and another number otherwise.
    fn fault_once() -> i32 {
        let page = memory::map(memory::page_size()).expect("memory");
        if !install(give_back) {
            return 2;
        }
        // SAFETY: the page is this test's own, and its fault is handled; `errno` is the thread's
        // own.
        unsafe {
            let _ = memory::protect(page.as_ptr() as usize, memory::page_size(), libc::PROT_NONE);
            *libc::__errno_location() = 77;
            page.as_ptr().write_volatile(1);
        }
        if errno() != 77 { 3 } else { OPEN.load(Relaxed) }
    }

    #[test]
    fn a_handler_leaves_errno_alone_and_is_not_interrupted() {
        assert_eq!(in_child(fault_once), 0);
    }

    /// Passes a fault on to an action that ignores it. Returns 0 if the next fault has its default
    /// effect.
    fn ignore_a_fault() -> i32 {
        // SAFETY: zero is a valid value of all three.
        let (mut previous, mut info, mut context) = unsafe {
            (
                std::mem::zeroed::<libc::sigaction>(),
                std::mem::zeroed::<libc::siginfo_t>(),
                std::mem::zeroed::<libc::ucontext_t>(),
            )
        };
        previous.sa_sigaction = libc::SIG_IGN;
        info.si_code = ACCESS_ERROR;
        pass_on(&previous, libc::SIGSEGV, &mut info, (&raw mut context).cast());
        i32::from(action().is_none_or(|action| action.sa_sigaction != libc::SIG_DFL))
    }

    /// With the default action the program ends where it crashed, and by this signal. A call of an
    /// invalid function pointer would end it elsewhere, and on Arm by another signal. It would not
    /// end the program at all if it faults on an alternate signal stack again and again.
    #[test]
    fn a_fault_that_is_ignored_is_made_again_without_a_handler() {
        assert_eq!(in_child(ignore_a_fault), 0);
    }

    /// Returns the status of a child that runs `work` and exits with its result.
    fn in_child(work: fn() -> i32) -> i32 {
        // SAFETY: the child runs only `work`, and exits.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child at once.
            0 => unsafe { libc::_exit(work()) },
            child => {
                let mut status = 0;
                // SAFETY: the status has a valid place.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                status
            }
        }
    }
}
