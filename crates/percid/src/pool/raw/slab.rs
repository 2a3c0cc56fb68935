//! Slabs, and the headers in front of their objects.

use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::pool::cut::Cut;
use crate::pool::left::Left;
use crate::pool::spare::SpareMark;
use crate::push_list;

/// The header in front of every object: 16 bytes, also if pointers have only four.
#[repr(C, align(16))]
pub(super) struct Header {
    /// The number of the pool, and [`LENT`] or [`IDLE`].
    pub(super) mark: u64,
    pub(super) slab: *const Slab,
}

pub(super) const HEADER: usize = size_of::<Header>();
pub(super) const LENT: u64 = 1 << 32;
pub(super) const IDLE: u64 = 2 << 32;

/// The minimum size of a slab in bytes, which is a number of whole pages on every machine. The
/// size of every slab is a multiple of it.
pub(super) const SLAB: usize = 64 * 1024;

/// The description of a slab, which lies in the arena and exists forever.
#[repr(C)]
pub(super) struct Slab {
    /// The link of the list of spares.
    pub(super) link: AtomicU64,
    pub(super) start: *mut u8,
    pub(super) cut: Cut,
    pub(super) spare: SpareMark,
    pub(super) left: Left,
    /// The slab of the same pool that was made before this one.
    pub(super) older: *mut Slab,
    pub(super) bytes: usize,
    /// The slab of any pool that was made before this one.
    pub(super) older_of_all: *mut Slab,
}

/// The slabs of all pools, the newest first.
pub(super) static ALL_SLABS: AtomicPtr<Slab> = AtomicPtr::new(ptr::null_mut());

/// Returns the address ranges of all slabs.
pub(crate) fn all_slabs() -> impl Iterator<Item = Range<usize>> {
    let mut next = push_list::first(&ALL_SLABS).cast_const();
    std::iter::from_fn(move || {
        if next.is_null() {
            return None;
        }
        // SAFETY: slabs exist forever, and these members do not change once the slab is on this
        // list. The others may, so no reference to the whole is made.
        let (start, bytes, older) = unsafe {
            (
                (&raw const (*next).start).read(),
                (&raw const (*next).bytes).read(),
                (&raw const (*next).older_of_all).read(),
            )
        };
        next = older;
        Some(start.addr()..start.addr() + bytes)
    })
}

pub(super) fn header(object: NonNull<u8>) -> *mut Header {
    object.as_ptr().cast::<Header>().wrapping_sub(1)
}
