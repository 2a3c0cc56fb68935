//! The allocator: caches per CPU in front of another allocator.

use std::alloc::{GlobalAlloc, Layout};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use percid::id::SourceError;
use percid::{Counter, Source};

use crate::block::Block;
use crate::cache::Cache;
use crate::mark::has_mark;
use crate::size_class::{CLASSES, SizeClass};
use crate::statistics::{ClassStatistics, Statistics};

/// The largest number of bytes that are cached, if the program chooses none.
const LIMIT: usize = 16 << 20;

/// Number of slow operations between two looks at the limit.
const SLOW_PER_LOOK: usize = 128;

/// An allocator that keeps freed blocks for the CPU that freed them, in front of another one.
///
/// ```
/// use std::alloc::System;
///
/// use percid_alloc::PerCpu;
///
/// #[global_allocator]
/// static ALLOCATOR: PerCpu<System> = PerCpu::new(System);
///
/// let words: Vec<u64> = (0..100).collect();
/// assert_eq!(words.iter().sum::<u64>(), 4950);
/// ```
///
/// A request of up to 32 KiB, with an alignment of up to 16, is rounded up to a size class: at most
/// a quarter more, or 15 bytes. A block that is freed goes to the cache of the ID that the thread
/// has at that moment ([`percid::Stack`]), whoever allocated it, and the next request of that class
/// on that CPU takes it from there. All other requests go to the allocator behind, and so do
/// blocks for which there is no room.
///
/// # Contract
///
/// * **Threads**: any number of threads may use it at once. Their number does not matter for what
///   is cached: an ID keeps up to 64 KiB in each class (three blocks of the largest classes), all
///   IDs together share as much as two of them keep, and the limit holds for the whole
///   ([`with_limit`](PerCpu::with_limit)).
/// * **Start and end**: it works before `main`, and in destructors of thread-local data. percid's
///   slow paths do not allocate, so they never come back to it.
/// * **Signals**: a request that the cache serves, and a free that it takes, are async-signal-safe.
///   Others call the allocator behind, which seldom is. So a handler must not allocate, unless that
///   allocator permits it. `errno` is what the allocator behind leaves.
/// * **Fork**: the child has a copy of everything, except blocks that other threads of the parent
///   were moving at the time, which are lost to it.
/// * **No memory**: if the allocator behind has none, the caches are emptied, and it is asked once
///   more. Then the request returns null, as `GlobalAlloc` demands. Nothing aborts here.
/// * **Overflows**: the lists of free blocks lie outside the blocks. A program that writes beyond
///   an object, or to a freed one, damages other objects and the allocator behind, but not these
///   lists.
/// * **Freed twice**: such a block is handed out twice. With the feature `checked` the second free
///   changes nothing and is counted ([`Statistics::freed_twice`]), if the block is in a cache, its
///   first 8 bytes are as they were when it was freed, and the two frees are not simultaneous.
/// * **Memory**: 12 KiB for the object, and 8 bytes for each block that an ID can keep: 48 KiB for
///   an ID that used every class.
/// * **Cost**: a request and a free that the cache serves cost a pop and a push of a
///   [`percid::Stack`]: no locked instruction and no system call. A free with no room gives back a
///   batch of up to 32 blocks.
pub struct PerCpu<A: GlobalAlloc> {
    behind: A,
    caches: [Cache; CLASSES],
    limit: AtomicUsize,
    /// Number of operations that the caches did not serve alone.
    slow: AtomicUsize,
    freed_twice: Counter,
}

impl<A: GlobalAlloc> PerCpu<A> {
    /// Creates an allocator without cached blocks, in front of `behind`. It will use the source of
    /// the process (see [`percid::init`]), and cache 16 MiB at most.
    ///
    /// ```
    /// use std::alloc::System;
    ///
    /// static ALLOCATOR: percid_alloc::PerCpu<System> = percid_alloc::PerCpu::new(System);
    /// assert_eq!(ALLOCATOR.limit(), 16 << 20);
    /// ```
    #[must_use]
    pub const fn new(behind: A) -> PerCpu<A> {
        PerCpu::with_limit(behind, LIMIT)
    }

    /// Creates an allocator like [`new`](PerCpu::new) that caches about `bytes` at most. The limit is
    /// looked at once in 128 operations that reach the allocator behind. If it is exceeded, the
    /// classes with the most cached bytes are emptied, until three quarters of it are left.
    ///
    /// ```
    /// use std::alloc::System;
    ///
    /// static SMALL: percid_alloc::PerCpu<System> = percid_alloc::PerCpu::with_limit(System, 1 << 20);
    /// assert_eq!(SMALL.limit(), 1 << 20);
    /// ```
    #[must_use]
    pub const fn with_limit(behind: A, bytes: usize) -> PerCpu<A> {
        let mut caches = [const { MaybeUninit::uninit() }; CLASSES];
        let mut index = 0;
        while index < CLASSES {
            caches[index] = MaybeUninit::new(Cache::new(SizeClass::at(index)));
            index += 1;
        }
        // SAFETY: every element was written.
        let caches = unsafe {
            std::mem::transmute::<[MaybeUninit<Cache>; CLASSES], [Cache; CLASSES]>(caches)
        };
        PerCpu {
            behind,
            caches,
            limit: AtomicUsize::new(bytes),
            slow: AtomicUsize::new(0),
            freed_twice: Counter::new(),
        }
    }

    /// Creates an allocator like [`with_limit`](PerCpu::with_limit) that uses `source`, whatever the
    /// process has chosen. It cannot be the global allocator, because it is not a constant.
    ///
    /// ```
    /// use std::alloc::System;
    ///
    /// let cached = percid_alloc::PerCpu::with_source(System, percid::Source::Atomic, 1 << 20)?;
    /// assert_eq!(cached.statistics().cached_bytes(), 0);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used, or not with the fence that emptying needs.
    pub fn with_source(behind: A, source: Source, bytes: usize) -> Result<PerCpu<A>, SourceError> {
        let mut all = PerCpu::with_limit(behind, bytes);
        for (cache, class) in all.caches.iter_mut().zip(SizeClass::all()) {
            *cache = Cache::with_source(class, source)?;
        }
        Ok(all)
    }

    /// Returns the number of bytes that are cached at most.
    ///
    /// ```
    /// use std::alloc::System;
    ///
    /// assert_eq!(percid_alloc::PerCpu::with_limit(System, 4096).limit(), 4096);
    /// ```
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Sets the number of bytes that are cached at most, from the next look on
    /// ([`with_limit`](PerCpu::with_limit)).
    ///
    /// ```
    /// use std::alloc::System;
    ///
    /// static CACHED: percid_alloc::PerCpu<System> = percid_alloc::PerCpu::new(System);
    /// CACHED.set_limit(1 << 20);
    /// assert_eq!(CACHED.limit(), 1 << 20);
    /// ```
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Relaxed);
    }

    /// Returns the allocator behind.
    ///
    /// ```
    /// use std::alloc::System;
    ///
    /// let System = percid_alloc::PerCpu::new(System).behind();
    /// ```
    #[must_use]
    pub const fn behind(&self) -> &A {
        &self.behind
    }

    /// Gives all cached blocks back to the allocator behind, and returns their number of bytes. It
    /// costs a fence of all CPUs, about 10 us, for each class that was used. It waits for other
    /// threads that do the same: do not call it in a signal handler.
    ///
    /// ```
    /// use std::alloc::{GlobalAlloc, Layout, System};
    ///
    /// let cached = percid_alloc::PerCpu::new(System);
    /// let layout = Layout::new::<u64>();
    /// // SAFETY: the layout has a size, and the block is freed once, with its layout.
    /// unsafe { cached.dealloc(cached.alloc(layout), layout) };
    /// assert_eq!(cached.trim(), 16);
    /// assert_eq!(cached.trim(), 0);
    /// ```
    pub fn trim(&self) -> usize {
        self.caches.iter().map(|cache| cache.drain(&self.behind)).sum()
    }

    /// Returns figures of every class.
    ///
    /// ```
    /// use std::alloc::System;
    ///
    /// let statistics = percid_alloc::PerCpu::new(System).statistics();
    /// assert!(statistics.classes.iter().all(|class| class.cached == 0));
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let of = |index| {
            let (class, cache) = (SizeClass::at(index), &self.caches[index]);
            ClassStatistics {
                size: class.size(),
                capacity: class.capacity(),
                obtained: cache.obtained.sum() as u64,
                returned: cache.returned.sum() as u64,
                cached: cache.count(),
            }
        };
        let freed_twice = self.freed_twice.sum() as u64;
        Statistics { classes: std::array::from_fn(of), freed_twice }
    }

    /// Frees an object whose layout is not known: for `free` of C. Its block is cached for requests
    /// that it can serve; one that is larger than what is cached, or too small, goes to the allocator
    /// behind with the layout of `usable` bytes aligned to 16.
    ///
    /// ```
    /// use std::alloc::{GlobalAlloc, Layout, System};
    ///
    /// let cached = percid_alloc::PerCpu::new(System);
    /// // SAFETY: the layout has a size. `System` frees blocks of every layout on Unix, where the
    /// // block is that of `malloc(32)`.
    /// # #[cfg(unix)]
    /// unsafe {
    ///     let object = cached.alloc(Layout::from_size_align_unchecked(20, 1));
    ///     cached.dealloc_by_usable_size(object, 32);
    /// }
    /// # #[cfg(unix)]
    /// assert_eq!(cached.trim(), 32);
    /// ```
    ///
    /// # Safety
    ///
    /// The object is this allocator's, or that of the allocator behind, aligned to 16 bytes, and not
    /// used any more. Its block has `usable` bytes that an object may use. The allocator behind frees
    /// a block whatever layout is named.
    #[inline]
    pub unsafe fn dealloc_by_usable_size(&self, object: *mut u8, usable: usize) {
        let (Some(class), Some(block)) = (SizeClass::within(usable), Block::new(object)) else {
            // SAFETY: the caller guarantees that the layout does not matter. It is a valid one: no
            // object has more bytes than the largest layout.
            return unsafe {
                let layout = Layout::from_size_align_unchecked(usable, 16);
                self.behind.dealloc(object, layout);
            };
        };
        self.keep(class, block);
    }

    #[inline(always)]
    fn keep(&self, class: SizeClass, block: Block) {
        if has_mark(&block) {
            return self.refuse();
        }
        if let Err(block) = self.cache(class).push(block) {
            self.give_back(class, block);
        }
    }

    /// Leaves a block that is free already where it is.
    #[cold]
    fn refuse(&self) {
        self.freed_twice.add(1);
    }

    #[inline(always)]
    fn cache(&self, class: SizeClass) -> &Cache {
        // SAFETY: the index of a class is below the number of classes.
        unsafe { self.caches.get_unchecked(class.index()) }
    }

    /// Obtains a block that the cache does not have, and some for the next requests.
    #[cold]
    #[inline(never)]
    fn obtain(&self, class: SizeClass, zeroed: bool) -> *mut u8 {
        let alloc = || self.obtain_from_behind(class.layout(), zeroed);
        let mut block = alloc();
        if block.is_null() && self.trim() > 0 {
            block = alloc();
        }
        if !block.is_null() {
            self.cache(class).refill(&self.behind);
            self.look_at_limit();
        }
        block
    }

    fn obtain_from_behind(&self, layout: Layout, zeroed: bool) -> *mut u8 {
        // SAFETY: no layout of a class is empty; the others are the caller's, who promises it.
        unsafe { if zeroed { self.behind.alloc_zeroed(layout) } else { self.behind.alloc(layout) } }
    }

    #[cold]
    #[inline(never)]
    fn give_back(&self, class: SizeClass, block: Block) {
        self.cache(class).give_back(block, &self.behind);
        self.look_at_limit();
    }

    fn look_at_limit(&self) {
        if self.slow.fetch_add(1, Relaxed) % SLOW_PER_LOOK == SLOW_PER_LOOK - 1 {
            self.keep_limit();
        }
    }

    /// Empties classes, those with the most bytes first, if more is cached than the limit.
    #[cold]
    fn keep_limit(&self) {
        let bytes = |class: SizeClass| self.cache(class).count() * class.size();
        let mut cached: usize = SizeClass::all().map(bytes).sum();
        let limit = self.limit();
        if cached <= limit {
            return;
        }
        while cached > limit / 4 * 3 {
            let Some(largest) = SizeClass::all().max_by_key(|&class| bytes(class)) else { return };
            let returned = self.cache(largest).drain(&self.behind);
            if returned == 0 {
                return;
            }
            cached = cached.saturating_sub(returned);
        }
    }

    /// Moves an object to a block of another size.
    ///
    /// # Safety
    ///
    /// The obligations of `GlobalAlloc::realloc`.
    #[inline(never)]
    unsafe fn move_to(&self, object: *mut u8, from: Layout, to: Layout) -> *mut u8 {
        // SAFETY: the new layout has a size, as the caller guarantees.
        let moved = unsafe { self.alloc(to) };
        if !moved.is_null() {
            // SAFETY: both blocks have that many bytes, and the new one is nobody else's. The caller
            // guarantees that the object has this layout, and that it is not used any more.
            unsafe {
                moved.copy_from_nonoverlapping(object, from.size().min(to.size()));
                self.dealloc(object, from);
            }
        }
        moved
    }
}

// SAFETY: a block comes from the allocator behind or from a cache, whose blocks came from there, with
// a layout that holds the one that was asked for, and nobody else has it: a `Stack` returns each item
// once. The layout says which of the two a freed block belongs to, and its class: the same one that
// it was obtained with. Nothing unwinds: the stacks and counters do not panic.
unsafe impl<A: GlobalAlloc> GlobalAlloc for PerCpu<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = SizeClass::of(layout) else {
            return self.obtain_from_behind(layout, false);
        };
        match self.cache(class).pop() {
            Some(block) => block.address(),
            None => self.obtain(class, false),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        let (Some(class), Some(block)) = (SizeClass::of(layout), Block::new(object)) else {
            // SAFETY: the object was allocated with this layout, which has no class, so it came
            // from there.
            return unsafe { self.behind.dealloc(object, layout) };
        };
        self.keep(class, block);
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(class) = SizeClass::of(layout) else {
            return self.obtain_from_behind(layout, true);
        };
        match self.cache(class).pop() {
            Some(block) => {
                // SAFETY: a block of the class has at least as many bytes.
                unsafe { block.address().write_bytes(0, layout.size()) };
                block.address()
            }
            None => self.obtain(class, true),
        }
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the new size is valid with this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (SizeClass::of(layout), SizeClass::of(new)) {
            // SAFETY: neither has a class, so the object came from the allocator behind.
            (None, None) => unsafe { self.behind.realloc(object, layout, new_size) },
            (old, new) if old == new => object,
            // SAFETY: the caller's obligations are the same.
            _ => unsafe { self.move_to(object, layout, new) },
        }
    }
}

impl<A: GlobalAlloc> Drop for PerCpu<A> {
    fn drop(&mut self) {
        self.trim();
    }
}

impl<A: GlobalAlloc> fmt::Debug for PerCpu<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerCpu").field("limit", &self.limit()).finish_non_exhaustive()
    }
}
