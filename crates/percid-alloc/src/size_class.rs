//! The sizes of cached blocks: multiples of 16 bytes up to 128, then four sizes for each doubling.
//! A block wastes at most a fifth of its bytes, and up to 15 of them below 128.

use std::alloc::Layout;

/// Number of size classes.
pub(crate) const CLASSES: usize = 40;

/// The size of the largest cached block, in bytes. Larger requests go to the allocator behind.
///
/// ```
/// assert_eq!(percid_alloc::MAX_SIZE, 32 << 10);
/// ```
pub const MAX_SIZE: usize = 32 << 10;

/// The alignment of all cached blocks, in bytes: that of `malloc` on 64-bit systems.
const ALIGN: usize = 16;

/// Memory that a part of a class may keep for one ID, in bytes, unless the blocks are too large.
const KEPT_BYTES: usize = 64 << 10;

/// All sizes are multiples of it, in bytes.
const UNIT: usize = 16;

/// The class of each number of units. A program's sizes are hard to predict, so a computation with a
/// branch costs more than a look.
static CLASS_OF_UNITS: [u8; MAX_SIZE / UNIT + 1] = {
    let mut classes = [0; MAX_SIZE / UNIT + 1];
    let (mut units, mut class) = (0, 0);
    while units < classes.len() {
        if units * UNIT > SizeClass(class).size() {
            class += 1;
        }
        classes[units] = class as u8;
        units += 1;
    }
    classes
};

/// The largest class whose blocks have no more than each number of units, and one more: 0 is none.
static CLASS_WITHIN_UNITS: [u8; MAX_SIZE / UNIT + 1] = {
    let mut classes = [0; MAX_SIZE / UNIT + 1];
    let (mut units, mut class) = (0, 0);
    while units < classes.len() {
        if class < CLASSES && units * UNIT >= SizeClass(class).size() {
            class += 1;
        }
        classes[units] = class as u8;
        units += 1;
    }
    classes
};

/// Bytes that an allocator may add to the largest cached block without that its class is lost.
const SURPLUS: usize = 64;

/// The class of a request, with its proof: always below [`CLASSES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeClass(usize);

impl SizeClass {
    /// Returns the class of a request; `None` if it goes to the allocator behind.
    #[inline(always)]
    pub(crate) const fn of(layout: Layout) -> Option<SizeClass> {
        if layout.align() > ALIGN || layout.size() > MAX_SIZE {
            return None;
        }
        Some(SizeClass(CLASS_OF_UNITS[layout.size().div_ceil(UNIT)] as usize))
    }

    /// Returns the class whose requests a block of so many bytes can serve; `None` if the block is too
    /// small for all of them, or larger than what is cached.
    #[inline(always)]
    pub(crate) const fn within(bytes: usize) -> Option<SizeClass> {
        if bytes > MAX_SIZE + SURPLUS {
            return None;
        }
        let units = if bytes > MAX_SIZE { MAX_SIZE / UNIT } else { bytes / UNIT };
        match CLASS_WITHIN_UNITS[units] {
            0 => None,
            class => Some(SizeClass(class as usize - 1)),
        }
    }

    /// Returns all classes, smallest first.
    pub(crate) fn all() -> impl DoubleEndedIterator<Item = SizeClass> {
        (0..CLASSES).map(SizeClass)
    }

    /// Returns the class with this index.
    pub(crate) const fn at(index: usize) -> SizeClass {
        assert!(index < CLASSES);
        SizeClass(index)
    }

    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0
    }

    /// Returns the number of bytes of a block.
    pub(crate) const fn size(self) -> usize {
        match self.0 {
            small @ 0..8 => (small + 1) * 16,
            large => {
                let (doubling, quarter) = ((large - 8) / 4, (large - 8) % 4);
                (128 << doubling) + (quarter + 1) * (32 << doubling)
            }
        }
    }

    /// Returns the layout of a block.
    #[inline(always)]
    pub(crate) const fn layout(self) -> Layout {
        // SAFETY: the alignment is a power of two, and a size is at most `MAX_SIZE`.
        unsafe { Layout::from_size_align_unchecked(self.size(), ALIGN) }
    }

    /// Returns the number of blocks that the cache keeps for one ID: one less than a power of two,
    /// because a part has one word besides, and its memory is rounded up to a power of two.
    pub(crate) const fn capacity(self) -> u32 {
        let blocks = KEPT_BYTES / self.size();
        let power = if blocks > 512 { 512 } else { 1 << blocks.ilog2() };
        if power < 4 { 3 } else { power - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        let sizes: Vec<usize> = SizeClass::all().map(SizeClass::size).collect();
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
        for size in 0..=MAX_SIZE {
            let layout = Layout::from_size_align(size, 1).expect("a layout");
            let class = SizeClass::of(layout).expect("a class");
            let smallest = sizes.iter().position(|&of_class| of_class >= size);
            assert_eq!(Some(class.index()), smallest, "{size}");
            assert!(class.size() <= size.max(1) + 15 || size * 5 >= class.size() * 4, "{size}");
        }
        assert_eq!(sizes.last(), Some(&MAX_SIZE));
    }

    #[test]
    fn a_block_serves_the_largest_class_that_it_holds() {
        for bytes in 0..=MAX_SIZE + SURPLUS {
            let largest = SizeClass::all().rfind(|class| class.size() <= bytes);
            assert_eq!(SizeClass::within(bytes), largest, "{bytes}");
        }
        assert_eq!(SizeClass::within(MAX_SIZE + SURPLUS + 1), None);
    }

    #[test]
    fn large_and_aligned_requests_have_no_class() {
        let of = |size, align| SizeClass::of(Layout::from_size_align(size, align).expect("valid"));
        assert_eq!(of(MAX_SIZE + 1, 1), None);
        assert_eq!(of(8, 32), None);
        assert!(of(8, 16).is_some());
    }

    #[test]
    fn parts_keep_64_kib_or_three_blocks() {
        for class in SizeClass::all() {
            let kept = class.capacity() as usize * class.size();
            assert!(kept <= KEPT_BYTES || class.capacity() == 3, "{class:?}");
            assert!((class.capacity() + 1).is_power_of_two());
        }
    }
}
