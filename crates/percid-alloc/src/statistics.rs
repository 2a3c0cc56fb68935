//! Figures of the caches.

use crate::size_class::CLASSES;

/// The figures of a [`PerCpu`](crate::PerCpu), from its method
/// [`statistics`](crate::PerCpu::statistics).
///
/// ```
/// use std::alloc::{GlobalAlloc, Layout, System};
///
/// use percid_alloc::PerCpu;
///
/// let cached = PerCpu::new(System);
/// let layout = Layout::new::<[u64; 8]>();
/// // SAFETY: the layout has a size, and the block is freed once, with the layout it was made with.
/// unsafe { cached.dealloc(cached.alloc(layout), layout) };
/// let statistics = cached.statistics();
/// assert_eq!(statistics.cached_bytes(), 64);
/// let class = statistics.classes.iter().find(|class| class.size == 64).expect("a class");
/// assert_eq!((class.obtained, class.returned, class.cached), (1, 0, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The size classes, smallest blocks first.
    pub classes: [ClassStatistics; CLASSES],
    /// Number of frees of blocks that were in a cache already; 0 without the feature `checked`.
    pub freed_twice: u64,
}

impl Statistics {
    /// Returns the bytes of all cached blocks.
    #[must_use]
    pub fn cached_bytes(&self) -> usize {
        self.classes.iter().map(|class| class.cached * class.size).sum()
    }
}

/// The figures of one size class. They are read one after the other, while other threads allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassStatistics {
    /// Number of bytes of a block.
    pub size: usize,
    /// Number of blocks that each ID keeps at most.
    pub capacity: u32,
    /// Number of blocks that came from the allocator behind.
    pub obtained: u64,
    /// Number of blocks that were given back to it.
    pub returned: u64,
    /// Number of blocks that are free now: about, as other threads move some.
    pub cached: usize,
}
