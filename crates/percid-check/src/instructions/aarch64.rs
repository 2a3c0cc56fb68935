//! Instructions and traps of 64-bit Arm.

/// The instruction `brk #0`.
pub(super) const TRAP: [u8; 4] = 0xd420_0000_u32.to_le_bytes();

/// Bytes by which the address of a trap is behind it when the handler runs.
pub(super) const PASSED: usize = 0;

/// Returns the lengths of the instructions in `code`; `None` if they do not end with it.
pub(super) fn lengths(code: &[u8]) -> Option<Vec<usize>> {
    code.len().is_multiple_of(4).then(|| vec![4; code.len() / 4])
}

/// Returns the instruction pointer of an interrupted thread.
pub(super) fn pointer(context: &mut libc::ucontext_t) -> &mut usize {
    // SAFETY: a register has the size of a pointer.
    unsafe { &mut *(&raw mut context.uc_mcontext.pc).cast() }
}
