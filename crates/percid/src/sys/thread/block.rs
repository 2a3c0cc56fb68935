//! The thread-local storage of percid.

use crate::sys::rseq_area::Area;

/// The thread's block. The assembly below defines the image that every thread starts with; this
/// declaration must match it.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Block {
    /// percid's own rseq area, registered if the C library has registered none.
    pub(crate) area: Area,
    /// Number of its registered bytes.
    pub(crate) registered: u32,
    /// One more than the CPU on which this thread last took an ID in a slow path; 0 for none.
    pub(crate) previous_cpu: u32,
    /// The kernel's `errno` once it has refused to register this thread.
    pub(crate) refused: u32,
    /// The index hint of the atomic source.
    pub(crate) hint: u32,
    /// Operations left until the hint is read again.
    pub(crate) hint_left: u32,
    /// Offset from the shared slot to the memory that a hint led to, which is open; 0 if there is
    /// none.
    pub(crate) copy: usize,
}

// The symbol contains the version, so that two versions of percid in one program do not collide.
with_sections! {
    std::arch::global_asm!(
        ".pushsection .tdata.percid_0_1, \"awT\", @progbits",
        ".balign 64",
        ".hidden percid_0_1_thread",
        ".globl percid_0_1_thread",
        ".type percid_0_1_thread, @object",
        ".size percid_0_1_thread, 128",
        "percid_0_1_thread:",
        ".long 0, -1",       // cpu_id_start, cpu_id: not registered
        ".quad 0",           // rseq_cs
        ".long 0, 0, -1, 0", // flags, node_id, mm_cid: none
        ".zero 96",
        ".popsection",
    );

    const _: () = assert!(size_of::<Block>() == 128 && std::mem::offset_of!(Block, area) == 0);
}
