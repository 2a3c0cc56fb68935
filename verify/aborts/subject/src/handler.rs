//! The signal handler: does what the interrupted operation does, to the same structure.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;

use percid_subject::board::Board;

use crate::structure;

static BOARD: OnceLock<&Board> = OnceLock::new();

pub(crate) fn install(board: &'static Board) {
    BOARD.get_or_init(|| board);
    // SAFETY: the structure is zeroed, which is valid, and the handler does async-signal-safe work
    // only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

extern "C" fn handler(_: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(board) = BOARD.get() else { return };
    // SAFETY: the kernel passes the context it will restore.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    board.interrupted_at.store(registers[libc::REG_RIP as usize] as u64, SeqCst);
    let Some((structure, operation)) = structure::chosen(board) else { return };
    structure.interrupt(operation);
    board.handled.fetch_add(1, SeqCst);
}
