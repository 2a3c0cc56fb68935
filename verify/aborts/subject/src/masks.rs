//! The mark of percid's active mask. It has no critical section; its instructions are compared.

use percid::ActiveMask;

static MASK: ActiveMask = ActiveMask::new();

/// Keeps the function in the program.
pub(crate) fn prepare() {
    percid_mask_mark(&MASK, 0);
}

/// Marks an ID. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_mask_mark(mask: &ActiveMask, id: u32) {
    mask.mark(id);
}
