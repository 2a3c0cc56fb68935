//! Untyped pools, for C and for programs that cannot use a guard: every object has a header that is
//! checked.
//!
//! Objects are cut from *slabs*, mappings of at least 64 KiB. In front of each object is a header
//! of 16 bytes: the number of its pool, its state (lent or idle), and its slab. Slabs stay mapped
//! for the life of the process, even after the pool is destroyed. When the pool is destroyed, and
//! when a drain or a bounded pool finds all objects of a slab idle, the slab's memory returns to
//! the kernel and reads as zero from then on. So the header of every former object can be read at
//! any time, and shows whether it is an object now. A destroyed pool leaves only address space
//! behind.

mod new_object;
mod put_error;
mod reclaim;
mod slab;

use std::alloc::Layout;
use std::fmt;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use super::current::Current;
use crate::arena::BlockList;
use crate::id::{Source, SourceError};
use crate::push_list;
use crate::stack::Stack;
use crate::sys::{memory, preserving_errno};
pub use put_error::PutError;
pub(crate) use slab::all_slabs;
use slab::{HEADER, IDLE, LENT, SLAB, Slab, header};

/// The maximum size of an object: eight of them are far below the address space, so no size
/// overflows.
const MAX_SIZE: usize = if usize::BITS < 64 { 1 << 26 } else { 1 << 40 };

/// A pool of untyped objects of one layout.
///
/// The contract of [`Pool`](crate::Pool) applies, except:
///
/// * **Contents**: a new object is zeroed; a reused one is as it was returned.
/// * **Checks**: [`put`](RawPool::put) reads and writes a header of 16 bytes in front of the
///   object. So it refuses an object that is returned twice, to another pool, or after its pool was
///   destroyed. That costs a load, a comparison and a store, mostly on the object's own cache line.
///   The check does not detect two threads that put one object at exactly the same time, nor an
///   object that was lent again in between.
/// * **Signals**: `get` and `put` are async-signal-safe; memory comes from the kernel.
/// * **Async**: an object may be held across `.await`, and put back by another thread.
/// * **Memory**: slabs of 64 KiB, or of a multiple that is large enough for eight objects; only
///   touched pages use memory. Their address space is never unmapped, not even when the pool is
///   dropped; their memory is returned. Objects that are lent at that time become invalid.
///
/// ```
/// use percid::pool::RawPool;
/// use std::alloc::Layout;
///
/// let pool = RawPool::new(Layout::new::<u64>(), 64);
/// let object = pool.get().expect("memory");
/// // SAFETY: the object has the layout of a u64, and is this thread's until it is given back.
/// unsafe {
///     object.cast::<u64>().write(7);
///     pool.put(object)?;
/// }
/// # Ok::<(), percid::pool::PutError>(())
/// ```
#[repr(C)]
pub struct RawPool {
    idle: Stack<usize>,
    /// The number of the pool, assigned at first use, when it has no objects; 0 until then.
    number: AtomicU64,
    /// The layout of the objects.
    size: usize,
    align: usize,
    current: Current<Slab>,
    /// All slabs, the newest first.
    slabs: AtomicPtr<Slab>,
    /// Slabs without objects, for reuse.
    spares: BlockList,
}

/// Offsets and sizes that C programs contain as numbers: they define pools in static storage, and
/// get and put inline.
#[cfg(all(feature = "capi", target_pointer_width = "64"))]
const _: () = {
    use slab::Header;
    use std::mem::offset_of;

    assert!(size_of::<RawPool>() == 320);
    assert!(offset_of!(RawPool, idle) == 0 && offset_of!(RawPool, number) == 256);
    assert!(offset_of!(RawPool, size) == 264 && offset_of!(RawPool, align) == 272);
    assert!(HEADER == 16 && offset_of!(Header, mark) == 0);
    assert!(LENT == 1 << 32 && IDLE == 2 << 32);
};

impl RawPool {
    /// Creates an empty pool of objects of this layout, with `capacity` idle ones for every ID and
    /// any number that IDs share. It will use the source of the process (see
    /// [`init`](crate::init)).
    ///
    /// ```
    /// use percid::pool::RawPool;
    /// use std::alloc::Layout;
    ///
    /// let pages = RawPool::new(Layout::from_size_align(4096, 4096)?, 64);
    /// assert!(pages.get().is_some());
    /// # Ok::<(), std::alloc::LayoutError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151, the alignment above 4096, or the size above 2^40; on
    /// 32 bits, if the capacity is above 131 071 or the size above 2^26.
    #[must_use]
    pub const fn new(object: Layout, capacity: u32) -> RawPool {
        RawPool::over(object, Stack::new(capacity))
    }

    /// Creates a pool like [`new`](RawPool::new) in which IDs share at most about `shared` idle
    /// objects. Objects that are returned beyond that are not used again until their memory was
    /// returned to the kernel. That happens at once if the object is the last of a slab of such
    /// objects, otherwise in a drain.
    ///
    /// ```
    /// use percid::pool::RawPool;
    /// use std::alloc::Layout;
    ///
    /// // 64 idle pages for each ID, and about 1000 that IDs share.
    /// static PAGES: RawPool = match Layout::from_size_align(4096, 4096) {
    ///     Ok(page) => RawPool::bounded(page, 64, 1000),
    ///     Err(_) => panic!("a power of two"),
    /// };
    /// assert!(PAGES.get().is_some());
    /// ```
    ///
    /// # Panics
    ///
    /// The same as for [`new`](RawPool::new).
    #[must_use]
    pub const fn bounded(object: Layout, capacity: u32, shared: usize) -> RawPool {
        RawPool::over(object, Stack::bounded(capacity, shared))
    }

    /// Creates a pool like [`new`](RawPool::new) that uses `source`, whatever the process has
    /// chosen.
    ///
    /// ```
    /// use percid::{Source, pool::RawPool};
    /// use std::alloc::Layout;
    ///
    /// let pool = RawPool::with_source(Source::Atomic, Layout::new::<[u64; 8]>(), 64)?;
    /// assert!(pool.get().is_some());
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used, or not with the fence that a drain needs.
    ///
    /// # Panics
    ///
    /// The same as for [`new`](RawPool::new).
    pub fn with_source(
        source: Source,
        object: Layout,
        capacity: u32,
    ) -> Result<RawPool, SourceError> {
        Ok(RawPool::over(object, Stack::with_source(source, capacity)?))
    }

    const fn over(object: Layout, idle: Stack<usize>) -> RawPool {
        assert!(object.align() <= 4096, "objects are aligned to a page at most");
        assert!(object.size() <= MAX_SIZE, "objects have up to 2^40 bytes (2^26 on 32 bits)");
        RawPool {
            idle,
            number: AtomicU64::new(0),
            size: object.size(),
            align: object.align(),
            current: Current { slab: AtomicPtr::new(ptr::null_mut()) },
            slabs: AtomicPtr::new(ptr::null_mut()),
            spares: BlockList::new(),
        }
    }

    /// Returns the layout of the objects.
    ///
    /// ```
    /// use percid::pool::RawPool;
    /// use std::alloc::Layout;
    ///
    /// assert_eq!(RawPool::new(Layout::new::<u64>(), 64).layout().size(), 8);
    /// ```
    #[must_use]
    pub fn layout(&self) -> Layout {
        // SAFETY: size and alignment were taken from a layout; those from C are checked before such
        // a pool is used.
        unsafe { Layout::from_size_align_unchecked(self.size, self.align) }
    }

    /// Lends an object; `None` if there is no memory.
    ///
    /// ```
    /// use percid::pool::RawPool;
    /// use std::alloc::Layout;
    ///
    /// let pool = RawPool::new(Layout::new::<u64>(), 64);
    /// let object = pool.get().expect("memory").cast::<u64>();
    /// // SAFETY: a new object is zeroed, and this thread's.
    /// assert_eq!(unsafe { object.read() }, 0);
    /// ```
    #[must_use = "memory that is not returned stays lent"]
    #[inline]
    pub fn get(&self) -> Option<NonNull<u8>> {
        let object = match self.idle.pop() {
            Some(address) => NonNull::new(ptr::with_exposed_provenance_mut(address))?,
            None => preserving_errno(|| self.cut())?,
        };
        // SAFETY: the object belongs to this thread alone, and has a header.
        unsafe { (*header(object)).mark = self.lent() };
        Some(object)
    }

    /// Returns a new object, even if there are idle ones.
    #[cfg(test)]
    #[allow(dead_code, reason = "for tests of Linux")]
    pub(crate) fn get_new(&self) -> Option<NonNull<u8>> {
        let object = preserving_errno(|| self.cut())?;
        // SAFETY: the object belongs to this thread alone, and has a header.
        unsafe { (*header(object)).mark = self.lent() };
        Some(object)
    }

    /// Returns an object to the pool.
    ///
    /// ```
    /// use percid::pool::RawPool;
    /// use std::alloc::Layout;
    ///
    /// let pool = RawPool::new(Layout::new::<u64>(), 64);
    /// let object = pool.get().expect("memory");
    /// // SAFETY: the object came from this pool and is not used any more.
    /// unsafe { pool.put(object) }?;
    /// # Ok::<(), percid::pool::PutError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The misuse of the object; then the call had no effect.
    ///
    /// # Safety
    ///
    /// The pointer came from [`get`](RawPool::get) of some pool, and no thread uses the object any
    /// more.
    #[inline]
    pub unsafe fn put(&self, object: NonNull<u8>) -> Result<(), PutError> {
        let header = header(object);
        // SAFETY: everything that was ever an object has a header that can be read.
        let mark = unsafe { (*header).mark };
        if mark != self.lent() {
            return Err(self.misuse(mark));
        }
        // SAFETY: the caller guarantees that no other thread uses the object.
        unsafe { (*header).mark = self.idle_mark() };
        // SAFETY: an object's header names its slab, and slabs exist forever.
        self.keep(object.as_ptr().expose_provenance(), unsafe { &*(*header).slab });
        Ok(())
    }

    /// Adds an idle object of a slab to the lists, or leaves it.
    #[inline]
    fn keep(&self, object: usize, slab: &Slab) {
        if self.idle.push(object).is_err() {
            self.leave(slab);
        }
    }

    /// Returns the address ranges of the memory that the pool has taken so far, one range per slab,
    /// in no order: for `mbind`, or for NUMA balancing. They belong to the pool until the process
    /// ends. Allocates; some nanoseconds per slab.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use percid::pool::RawPool;
    ///
    /// let pool = RawPool::new(Layout::new::<[u64; 8]>(), 64);
    /// assert!(pool.slabs().is_empty());
    /// let object = pool.get().expect("memory");
    /// assert!(pool.slabs().iter().any(|slab| slab.contains(&object.addr().get())));
    /// ```
    pub fn slabs(&self) -> Vec<Range<usize>> {
        let range = |slab: &Slab| slab.start.addr()..slab.start.addr() + self.slab_bytes();
        self.all_slabs().map(range).collect()
    }

    fn all_slabs(&self) -> impl Iterator<Item = &Slab> {
        let newest = push_list::first(&self.slabs);
        // SAFETY: null, or a slab, which exists forever.
        std::iter::successors(unsafe { newest.as_ref() }, |slab| unsafe { slab.older.as_ref() })
    }

    /// Returns the number of objects that fit a slab.
    fn per_slab(&self) -> u32 {
        ((self.slab_bytes() - self.first() - self.size) / self.stride() + 1) as u32
    }

    fn slab_bytes(&self) -> usize {
        (self.first() + 8 * self.stride()).next_multiple_of(SLAB)
    }

    /// Returns the offset from a slab's start to its first object.
    fn first(&self) -> usize {
        self.align.max(HEADER)
    }

    /// Returns the distance between consecutive objects in a slab.
    fn stride(&self) -> usize {
        (self.size + HEADER).next_multiple_of(self.first())
    }

    fn lent(&self) -> u64 {
        LENT | self.number.load(Relaxed)
    }

    fn idle_mark(&self) -> u64 {
        IDLE | self.number.load(Relaxed)
    }

    #[cold]
    fn misuse(&self, mark: u64) -> PutError {
        match mark {
            0 => PutError::Gone,
            mark if mark == self.idle_mark() => PutError::DoublePut,
            _ => PutError::WrongPool,
        }
    }
}

// SAFETY: objects are lent to one thread at a time; slabs are only changed by `cut` and `retire`,
// as described there.
unsafe impl Sync for RawPool {}
// SAFETY: objects are lent to one thread at a time, whichever thread owns the pool; slabs are only
// changed by `cut` and `retire`, as described there.
unsafe impl Send for RawPool {}

impl Drop for RawPool {
    fn drop(&mut self) {
        let mut slab = *self.slabs.get_mut();
        while !slab.is_null() {
            // SAFETY: slabs exist forever; `&mut self` guarantees that no other thread uses this
            // pool. If the kernel refuses (locked memory), the headers by which objects are
            // recognised are zeroed instead.
            unsafe {
                if !memory::discard((*slab).start.expose_provenance(), self.slab_bytes()) {
                    (*slab).start.write_bytes(0, self.slab_bytes());
                }
                slab = (*slab).older;
            }
        }
    }
}

impl fmt::Debug for RawPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawPool").field("object", &self.layout()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
