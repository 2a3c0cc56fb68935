//! Instructions and traps of x86-64.

use iced_x86::{Decoder, DecoderOptions};

/// The instruction `int3`.
pub(super) const TRAP: [u8; 1] = [0xcc];

/// Bytes by which the address of a trap is behind it when the handler runs.
pub(super) const PASSED: usize = 1;

/// Returns the lengths of the instructions in `code`; `None` if they do not end with it.
pub(super) fn lengths(code: &[u8]) -> Option<Vec<usize>> {
    let decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let all: Vec<_> = decoder.into_iter().collect();
    let valid = all.iter().all(|instruction| !instruction.is_invalid());
    valid.then(|| all.iter().map(|instruction| instruction.len()).collect())
}

/// Returns the instruction pointer of an interrupted thread.
pub(super) fn pointer(context: &mut libc::ucontext_t) -> &mut usize {
    let register = &raw mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    // SAFETY: a register has the size of a pointer.
    unsafe { &mut *register.cast() }
}
