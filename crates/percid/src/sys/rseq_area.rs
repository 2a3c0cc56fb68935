//! The layout of the rseq area, as defined by the kernel.

/// The rseq area. Only its first 28 bytes are used; later kernels may fill the rest.
///
/// The kernel requires an alignment of at least the size, so 64 bytes of alignment belong to a size
/// of 64. Both are the maximum: the loader provides no larger alignment for libraries that are
/// loaded late.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Area {
    pub(super) cpu_id_start: u32,
    pub(super) cpu_id: i32,
    pub(super) rseq_cs: u64,
    pub(super) flags: u32,
    pub(super) node_id: u32,
    pub(super) mm_cid: u32,
    pub(super) later: [u32; 9],
}

const _: () = {
    assert!(size_of::<Area>() == 64 && align_of::<Area>() == 64);
    assert!(std::mem::offset_of!(Area, cpu_id) == 4);
    assert!(std::mem::offset_of!(Area, rseq_cs) == 8);
    assert!(std::mem::offset_of!(Area, mm_cid) == 24);
};
