//! Memory for requests that come before the allocator behind was found: those of the search for it.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes for all requests together. They are never freed.
const SIZE: usize = 64 << 10;

/// A block has its size before it.
const HEADER: usize = 16;

#[repr(C, align(4096))]
struct Memory(UnsafeCell<[u8; SIZE]>);

// SAFETY: each byte belongs to the one request that took it.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; SIZE]));

/// Number of bytes that were taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Returns zeroed memory, aligned to 16 bytes or to `align`; null if there is no more.
pub(crate) fn allocate(size: usize, align: usize) -> *mut u8 {
    let align = align.max(HEADER);
    if size > SIZE || align > SIZE {
        return ptr::null_mut();
    }
    let place = |taken: usize| (taken + HEADER).next_multiple_of(align);
    let taken = TAKEN.fetch_update(Relaxed, Relaxed, |taken| {
        let end = place(taken) + size.next_multiple_of(HEADER);
        (end <= SIZE).then_some(end)
    });
    let Ok(taken) = taken else { return ptr::null_mut() };
    // SAFETY: the bytes from `taken` to the end of the block are within the memory, and no other
    // request has them.
    unsafe {
        let block = MEMORY.0.get().cast::<u8>().add(place(taken));
        block.sub(HEADER).cast::<usize>().write(size);
        block
    }
}

/// Returns `true` if a block is from here.
#[inline(always)]
pub(crate) fn has(block: *const u8) -> bool {
    (block as usize).wrapping_sub(MEMORY.0.get() as usize) < SIZE
}

/// Returns the number of bytes of a block.
///
/// # Safety
///
/// The block is from here.
pub(crate) unsafe fn size_of(block: *const u8) -> usize {
    // SAFETY: the size was written there before the block was handed out.
    unsafe { block.sub(HEADER).cast::<usize>().read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_until_there_is_no_more() {
        let mut blocks = Vec::new();
        for (size, align) in [(1, 1), (100, 16), (0, 8), (5000, 4096), (17, 64)].iter().cycle() {
            let block = allocate(*size, *align);
            if block.is_null() {
                break;
            }
            assert!(has(block) && (block as usize).is_multiple_of((*align).max(16)));
            // SAFETY: the block is from here, and has these bytes.
            unsafe {
                assert_eq!(size_of(block), *size);
                assert!((0..*size).all(|at| block.add(at).read() == 0));
                block.write_bytes(0xaa, *size);
            }
            blocks.push((block as usize, *size));
        }
        assert!(blocks.is_sorted_by(|a, b| a.0 + a.1 <= b.0 - HEADER), "{blocks:?}");
        assert!(blocks.len() > 10);
        assert!(allocate(SIZE, 16).is_null() && allocate(1, 2 * SIZE).is_null());
        assert!(allocate(usize::MAX, 16).is_null());
        assert!(!has(&raw const blocks[0].1 as *const u8));
    }
}
