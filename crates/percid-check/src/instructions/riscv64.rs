//! Instructions and traps of 64-bit RISC-V.

/// The instruction `c.ebreak`, which replaces the first half of a long instruction.
pub(super) const TRAP: [u8; 2] = 0x9002_u16.to_le_bytes();

/// Bytes by which the address of a trap is behind it when the handler runs.
pub(super) const PASSED: usize = 0;

/// Returns the lengths of the instructions in `code`; `None` if they do not end with it.
pub(super) fn lengths(code: &[u8]) -> Option<Vec<usize>> {
    let (mut lengths, mut at) = (Vec::new(), 0);
    while let Some(first) = code.get(at) {
        // The two lowest bits are set in all instructions of 4 bytes.
        let length = if first & 3 == 3 { 4 } else { 2 };
        lengths.push(length);
        at += length;
    }
    (at == code.len()).then_some(lengths)
}

/// Returns the instruction pointer of an interrupted thread.
pub(super) fn pointer(context: &mut libc::ucontext_t) -> &mut usize {
    // SAFETY: a register has the size of a pointer. The first one is the instruction pointer.
    unsafe { &mut *(&raw mut context.uc_mcontext.__gregs[0]).cast() }
}
