//! The descriptors of all sections of this program.

/// `struct rseq_cs`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) version_and_flags: [u32; 2],
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) abort: usize,
}

unsafe extern "C" {
    /// The first descriptor, and behind the last: the linker defines them for sections with such
    /// names.
    static __start___rseq_cs: Descriptor;
    static __stop___rseq_cs: Descriptor;
}

pub(crate) fn all() -> &'static [Descriptor] {
    // SAFETY: the section holds descriptors and nothing else, and is never written.
    unsafe {
        let (first, end) = (&raw const __start___rseq_cs, &raw const __stop___rseq_cs);
        std::slice::from_raw_parts(first, end.offset_from(first) as usize)
    }
}

impl Descriptor {
    pub(crate) fn contains(&self, place: usize) -> bool {
        place.wrapping_sub(self.start) < self.length
    }
}

/// Returns the section that has an instruction.
pub(crate) fn at(place: usize) -> Option<&'static Descriptor> {
    all().iter().find(|section| section.contains(place))
}

/// Returns the section whose descriptor has this address.
pub(crate) fn of(address: usize) -> Option<&'static Descriptor> {
    all().iter().find(|section| std::ptr::from_ref(*section).addr() == address)
}
