//! The values that every critical section reads.

use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicPtr, AtomicU32, Ordering::Relaxed};

/// The values that every critical section reads. Slow paths write them, before they mark any object
/// as ready that would lead a thread into a section of that source.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct FastPath {
    /// Offset from the thread pointer to the rseq area, in bytes.
    pub(crate) area: AtomicIsize,
    /// Entry 0 of the table source: `table[cpu] = ID + 1`, or 0.
    pub(crate) table: AtomicPtr<AtomicU32>,
    /// Kernel IDs below this have open memory.
    pub(crate) kernel_limit: AtomicU32,
}

/// The one instance: a process has one rseq area per thread, one table and one arena.
///
/// The inline critical sections of C programs (`percid_inline.h`) find it in the table of the C
/// interface. It has no name that is visible to linkers: two libpercid copies in one process must
/// not share it.
pub(crate) static FAST_PATH: FastPath = FastPath {
    area: AtomicIsize::new(0),
    table: AtomicPtr::new(ptr::null_mut()),
    kernel_limit: AtomicU32::new(0),
};

/// Offsets that compiled C programs contain as numbers: a change requires another version of the C
/// interface.
#[cfg(feature = "capi")]
const _: () = {
    assert!(std::mem::offset_of!(FastPath, area) == 0);
    assert!(std::mem::offset_of!(FastPath, table) == 8);
    assert!(std::mem::offset_of!(FastPath, kernel_limit) == 16);
    assert!(crate::arena::SHIFT == 24);
};

impl FastPath {
    /// Returns the offset from the thread pointer to the rseq area, in bytes.
    pub(crate) fn area(&self) -> isize {
        self.area.load(Relaxed)
    }

    pub(crate) fn set_area(&self, offset: isize) {
        self.area.store(offset, Relaxed);
    }

    pub(crate) fn set_table(&self, entries: *mut AtomicU32) {
        self.table.store(entries, Relaxed);
    }

    pub(crate) fn kernel_limit(&self) -> u32 {
        self.kernel_limit.load(Relaxed)
    }

    /// Admits the kernel IDs below `limit`; the limit never decreases.
    pub(crate) fn raise_kernel_limit(&self, limit: u32) {
        self.kernel_limit.fetch_max(limit, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_kernels_ids_never_falls() {
        let it = FastPath {
            area: AtomicIsize::new(0),
            table: AtomicPtr::new(ptr::null_mut()),
            kernel_limit: AtomicU32::new(0),
        };
        [3, 5, 4].into_iter().for_each(|limit| it.raise_kernel_limit(limit));
        assert_eq!(it.kernel_limit(), 5);
    }
}
