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

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::current::Current;
use super::cut::Cut;
use super::left::Left;
use super::spare::SpareMark;
use crate::arena::{Block, BlockList};
use crate::id::{Source, SourceError};
use crate::push_list;
use crate::stack::Stack;
use crate::sys::{memory, preserving_errno, race_detector};

/// The header in front of every object: 16 bytes, also if pointers have only four.
#[repr(C, align(16))]
struct Header {
    /// The number of the pool, and [`LENT`] or [`IDLE`].
    mark: u64,
    slab: *const Slab,
}

const HEADER: usize = size_of::<Header>();
const LENT: u64 = 1 << 32;
const IDLE: u64 = 2 << 32;

/// The maximum size of an object: eight of them are far below the address space, so no size
/// overflows.
const MAX_SIZE: usize = if usize::BITS < 64 { 1 << 26 } else { 1 << 40 };

/// The minimum size of a slab in bytes, which is a number of whole pages on every machine. The
/// size of every slab is a multiple of it.
const SLAB: usize = 64 * 1024;

/// The description of a slab, which lies in the arena and exists forever.
#[repr(C)]
struct Slab {
    /// The link of the list of spares.
    link: AtomicU64,
    start: *mut u8,
    cut: Cut,
    spare: SpareMark,
    left: Left,
    /// The slab of the same pool that was made before this one.
    older: *mut Slab,
    bytes: usize,
    /// The slab of any pool that was made before this one.
    older_of_all: *mut Slab,
}

/// The slabs of all pools, the newest first.
static ALL_SLABS: AtomicPtr<Slab> = AtomicPtr::new(ptr::null_mut());

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

/// The reason why an object was not taken back.
///
/// ```
/// use percid::pool::{PutError, RawPool};
/// use std::alloc::Layout;
///
/// let pool = RawPool::new(Layout::new::<u64>(), 64);
/// let object = pool.get().expect("memory");
/// // SAFETY: the object came from this pool and is not used any more.
/// unsafe {
///     assert_eq!(pool.put(object), Ok(()));
///     assert_eq!(pool.put(object), Err(PutError::DoublePut));
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PutError {
    /// It is in the pool already.
    DoublePut,
    /// It belongs to another pool.
    WrongPool,
    /// Its memory was returned to the kernel: the pool was destroyed, or the object was idle during
    /// a drain, or a bounded pool had no room for it.
    Gone,
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PutError::DoublePut => "the object is in the pool already: it was put back twice",
            PutError::WrongPool => "the object belongs to another pool",
            PutError::Gone => {
                "the object's memory is gone: its pool was destroyed, or it was put back before a drain"
            }
        })
    }
}

impl std::error::Error for PutError {}

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

    /// Leaves an idle object of a slab, for which there is no room, or no memory for a list. The
    /// last object of a slab frees the slab's memory.
    #[cold]
    fn leave(&self, slab: &Slab) {
        if slab.left.add(1) == self.per_slab() {
            // SAFETY: `retire` is told that the caller holds no objects of the slab.
            preserving_errno(|| unsafe { self.retire(slab, 0) });
        }
    }

    /// Returns the memory of all slabs without objects in use to the kernel, and returns the number
    /// of idle objects in them. Idle objects of other slabs stay. For objects that it may miss, see
    /// [`Stack`]; it also misses slabs whose objects another drain currently holds.
    ///
    /// ```
    /// use percid::pool::RawPool;
    /// use std::alloc::Layout;
    ///
    /// let pool = RawPool::new(Layout::new::<u64>(), 64);
    /// let object = pool.get().expect("memory");
    /// // SAFETY: the object came from this pool and is not used any more.
    /// unsafe { pool.put(object) }?;
    /// assert_eq!(pool.drain(), 1);
    /// # Ok::<(), percid::pool::PutError>(())
    /// ```
    pub fn drain(&self) -> usize {
        // Not a hash map: the first one of a thread calls the C library for random bytes, which is
        // a cancellation point.
        let mut idle: BTreeMap<*const Slab, Vec<usize>> = BTreeMap::new();
        self.idle.drain(|address| {
            let object = ptr::with_exposed_provenance_mut::<u8>(address);
            // SAFETY: an idle object has a header, which belongs to this thread alone now.
            let slab = NonNull::new(object).map(|object| unsafe { (*header(object)).slab });
            idle.entry(slab.unwrap_or(ptr::null())).or_default().push(address);
        });
        let mut freed = 0;
        for slab in self.all_slabs() {
            let objects = idle.remove(&ptr::from_ref(slab)).unwrap_or_default();
            // SAFETY: the objects came from the lists.
            match unsafe { self.retire(slab, objects.len() as u32) } {
                Some(count) => freed += count as usize,
                None => objects.into_iter().for_each(|object| self.keep(object, slab)),
            }
        }
        freed
    }

    /// Frees a slab's memory if these idle objects, and those that were left, are all that were
    /// ever cut from it. In that case returns their number.
    ///
    /// # Safety
    ///
    /// The caller holds that many objects of the slab.
    unsafe fn retire(&self, slab: &Slab, idle: u32) -> Option<u32> {
        let left = slab.left.take();
        // SAFETY: the caller holds `idle` objects, and this call has taken those that were left.
        let retired = idle + left > 0 && unsafe { self.give_back(slab, idle + left) };
        if !retired && left > 0 {
            slab.left.add(left);
        }
        retired.then_some(idle + left)
    }

    /// Frees a slab's memory if the caller has all objects that were ever cut from it. Returns
    /// `true` if it did.
    ///
    /// # Safety
    ///
    /// The caller holds that many objects of the slab, and at least one.
    unsafe fn give_back(&self, slab: &Slab, idle: u32) -> bool {
        // From here on no object is cut from it.
        let Some(count) = slab.cut.close(idle, self.per_slab()) else { return false };
        // SAFETY: all objects of the slab belong to the caller.
        let discarded =
            unsafe { memory::discard(slab.start.expose_provenance(), self.slab_bytes()) };
        if discarded {
            // A thread that cuts objects from it again is ordered after the last users of the
            // memory.
            race_detector::release(ptr::from_ref(slab).addr());
            slab.cut.open(0);
            self.spare(slab);
        } else {
            slab.cut.open(count);
        }
        discarded
    }

    /// Adds a slab that objects can be cut from to the list of spares, unless it is there.
    fn spare(&self, slab: &Slab) {
        if slab.spare.set() {
            self.spares.push(Block(ptr::from_ref(slab).expose_provenance()));
        }
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

    /// Cuts a new object.
    #[cold]
    fn cut(&self) -> Option<NonNull<u8>> {
        self.ensure_number();
        loop {
            let current = self.current.get();
            // SAFETY: null, or a slab, which exists forever.
            if let Some(slab) = unsafe { current.as_ref() } {
                if let Some(index) = slab.cut.next(self.per_slab()) {
                    race_detector::acquire(ptr::from_ref(slab).addr());
                    return NonNull::new(self.object_of(slab, index));
                }
            }
            let slab = self.take_spare().or_else(|| self.new_slab())?;
            if !self.current.replace(current, slab) {
                // SAFETY: slabs exist forever.
                self.spare(unsafe { &*slab });
            }
        }
    }

    /// Returns an object that was just cut, after writing its header.
    fn object_of(&self, slab: &Slab, index: u32) -> *mut u8 {
        // SAFETY: `index` is below the number of objects that fit the slab.
        unsafe {
            let object = slab.start.add(self.first() + index as usize * self.stride());
            object.cast::<Header>().sub(1).write(Header { mark: 0, slab });
            object
        }
    }

    fn take_spare(&self) -> Option<*mut Slab> {
        let slab = ptr::with_exposed_provenance_mut::<Slab>(self.spares.pop()?.0);
        // SAFETY: slabs exist forever; this one is on no list any more.
        unsafe { (*slab).spare.clear() };
        Some(slab)
    }

    fn new_slab(&self) -> Option<*mut Slab> {
        let block = Block::claim(size_of::<Slab>())?;
        let Some(start) = memory::map(self.slab_bytes()) else {
            // SAFETY: no other thread has access to the block.
            unsafe { block.release(size_of::<Slab>()) };
            return None;
        };
        let slab = ptr::with_exposed_provenance_mut::<Slab>(block.0);
        // SAFETY: this is a fresh block in the shared slot, large enough, aligned to a cache line
        // and zeroed. Zero is the right value of all fields except these and the `older` ones. The
        // link is not written: a thread that lost a race for the block may still read it.
        unsafe {
            (&raw mut (*slab).start).write(start.as_ptr());
            (&raw mut (*slab).bytes).write(self.slab_bytes());
        }
        // For a detector, mapping memory is a write to it.
        race_detector::release(slab.addr());
        // SAFETY: before the slab is pushed a second time, only threads that iterate over all slabs
        // have access to it, and they do not read the other list's link.
        let link = |older| unsafe { (&raw mut (*slab).older_of_all).write(older) };
        push_list::push(&ALL_SLABS, slab, link);
        // SAFETY: no other thread uses the `older` link before the slab is pushed to this list.
        let link = |older| unsafe { (&raw mut (*slab).older).write(older) };
        push_list::push(&self.slabs, slab, link);
        Some(slab)
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

    /// Assigns a number to the pool, unless it has one. This happens before the first object is
    /// cut, so every thread that has an object of the pool reads the number.
    fn ensure_number(&self) {
        static POOLS: AtomicU32 = AtomicU32::new(1);
        if self.number.load(Relaxed) == 0 {
            let number = u64::from(POOLS.fetch_add(1, Relaxed));
            // A number that another thread has assigned in the meantime stays.
            let _ = self.number.compare_exchange(0, number, Relaxed, Relaxed);
        }
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

fn header(object: NonNull<u8>) -> *mut Header {
    object.as_ptr().cast::<Header>().wrapping_sub(1)
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
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::sys::steps::{self, Step};

    fn pool(size: usize, align: usize) -> RawPool {
        RawPool::new(Layout::from_size_align(size, align).expect("a layout"), 16)
    }

    fn get(pool: &RawPool) -> NonNull<u8> {
        pool.get().expect("memory")
    }

    #[test]
    #[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
    fn objects_are_zeroed_aligned_and_apart() {
        for (size, align) in [(0, 1), (1, 1), (24, 8), (64, 64), (100, 4096), (200_000, 16)] {
            let pool = pool(size, align);
            let mut ranges: Vec<usize> = Vec::new();
            for _ in 0..50 {
                let object = get(&pool).as_ptr();
                assert_eq!(object.addr() % align, 0);
                // SAFETY: the object has `size` bytes.
                unsafe {
                    assert!((0..size).all(|byte| object.add(byte).read() == 0));
                    object.write_bytes(0xff, size);
                }
                ranges.push(object.addr());
            }
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0] + size <= pair[1] && pair[0] < pair[1]));
        }
    }

    /// Another thread maps a slab while this one does: each object that is cut comes from a slab
    /// that is full before the next is mapped.
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_lost_race_for_a_slab_wastes_none() {
        let pool: &RawPool = Box::leak(Box::new(pool(1000, 8)));
        let watching = steps::watch(|step| {
            if step == Step::Map(pool.slab_bytes()) {
                pool.get_new().expect("memory");
            }
            None
        });
        let slabs = || pool.slabs().len() as u32;
        (0..20 * pool.per_slab()).for_each(|_| _ = pool.get_new().expect("memory"));
        drop(watching);
        assert!((20..=22).contains(&slabs()), "{} slabs for the objects of 20", slabs());
    }

    #[test]
    fn misuse_is_refused_and_changes_nothing() {
        let other = pool(32, 8);
        // The thread stays on the same CPU except at the end of a time slice, which comes after
        // hundreds of attempts. If it were every second attempt, all would fail once in 2^100.
        let again = (0..100).any(|_| {
            let one = pool(32, 8);
            let object = get(&one);
            // SAFETY: the pointers came from pools, and no thread uses the objects.
            unsafe {
                assert_eq!(other.put(object), Err(PutError::WrongPool));
                assert_eq!(one.put(object), Ok(()));
                assert_eq!(one.put(object), Err(PutError::DoublePut));
                assert_eq!(other.put(object), Err(PutError::WrongPool));
                let (first, second) = (get(&one), get(&one));
                assert!(first != second, "it was there once only");
                drop(one);
                assert_eq!(other.put(object), Err(PutError::Gone));
                first == object
            }
        });
        assert!(again, "an object that was put back is not lent again");
    }

    /// Memory that a pool cannot free stays in use: Linux refuses to drop locked memory.
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_slab_that_the_kernel_keeps_is_used_again() {
        let pool = pool(1000, 8);
        let objects: HashSet<_> = (0..20).map(|_| get(&pool)).collect();
        let slab = pool.slabs().remove(0);
        let start = ptr::with_exposed_provenance::<libc::c_void>(slab.start);
        // SAFETY: memory of the pool.
        if unsafe { libc::mlock(start, slab.len()) } != 0 {
            return percid_skips::not_checked("a pool of locked memory", "no memory can be locked");
        }
        // SAFETY: the objects came from this pool and no thread uses them.
        objects.iter().for_each(|&object| unsafe { pool.put(object) }.expect("it was lent"));
        assert_eq!(pool.drain(), 0);
        let cut_before = pool.slabs().len();
        let again: HashSet<_> = (0..20).map(|_| get(&pool)).collect();
        assert!(!again.is_disjoint(&objects), "they are gone");
        let all: HashSet<_> = again.union(&objects).collect();
        let more: HashSet<_> = (0..20).map(|_| get(&pool)).collect();
        assert!(more.is_disjoint(&again), "lent twice");
        assert_eq!(pool.slabs().len(), 1, "the rest of the slab is lost");
        let more: HashSet<_> = (0..100).map(|_| get(&pool)).collect();
        assert!(more.iter().all(|object| !again.contains(object)), "lent twice");
        assert!(cut_before == 1 && all.len() < 40);
        // SAFETY: memory of the pool.
        unsafe { libc::munlock(start, slab.len()) };
    }

    fn bounded(shared: usize) -> RawPool {
        RawPool::bounded(Layout::from_size_align(1000, 8).expect("a layout"), 1, shared)
    }

    /// Lends as many objects as `slabs` slabs have, and fills them.
    fn get_slabs(pool: &RawPool, slabs: u32) -> Vec<NonNull<u8>> {
        let objects: Vec<_> = (0..slabs * pool.per_slab()).map(|_| get(pool)).collect();
        // SAFETY: the objects have 1000 bytes, and belong to this thread.
        objects.iter().for_each(|object| unsafe { object.write_bytes(0xff, 1000) });
        objects
    }

    fn put(pool: &RawPool, object: NonNull<u8>) {
        // SAFETY: the objects of these tests came from the pool and no thread uses them.
        unsafe { pool.put(object) }.expect("it was lent");
    }

    /// Returns the number of objects whose memory was freed.
    fn gone(objects: &[NonNull<u8>]) -> usize {
        // SAFETY: slabs stay mapped.
        objects.iter().filter(|object| unsafe { object.read() } == 0).count()
    }

    #[test]
    #[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
    fn what_a_bounded_pool_has_no_room_for_goes_back_with_its_slab() {
        let pool = bounded(0);
        let objects = get_slabs(&pool, 4);
        objects.iter().for_each(|&object| put(&pool, object));
        // Every ID keeps one, and the list about a batch, of the slabs that were put first.
        let at_once = gone(&objects);
        assert!(at_once >= 2 * pool.per_slab() as usize, "{at_once}");
        // SAFETY: the object came from the pool and no thread uses it.
        let again = unsafe { pool.put(objects[0]) };
        assert!(matches!(again, Err(PutError::DoublePut | PutError::Gone)), "{again:?}");
        assert_eq!(pool.drain() + at_once, objects.len());
        assert_eq!(gone(&objects), objects.len());
        // The slabs are reused.
        let again: HashSet<_> = get_slabs(&pool, 4).into_iter().collect();
        assert_eq!((again.len(), pool.slabs().len()), (objects.len(), 4));
    }

    #[test]
    #[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
    fn a_slab_stays_as_long_as_one_of_its_objects_is_lent() {
        let pool = bounded(0);
        let objects = get_slabs(&pool, 3);
        // One or two objects of each slab; the test does not know the borders of the slabs.
        let kept: Vec<_> = objects.iter().copied().step_by(pool.per_slab() as usize / 2).collect();
        let others = objects.iter().filter(|object| !kept.contains(object));
        others.for_each(|&object| put(&pool, object));
        pool.drain();
        assert_eq!((gone(&kept), gone(&objects)), (0, 0));
        kept.iter().for_each(|&object| put(&pool, object));
        pool.drain();
        assert_eq!(gone(&objects), objects.len());
    }

    /// One thread gets objects and others put them, without end, in a bounded number of slabs.
    #[test]
    #[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
    fn a_bounded_pool_stays_bounded_where_one_gets_and_others_put() {
        const LENT: u64 = 0x1e27;
        let pool = bounded(20);
        let (sender, receiver) = std::sync::mpsc::sync_channel::<usize>(100);
        let receiver = std::sync::Mutex::new(receiver);
        let word = |object: usize| {
            // SAFETY: an object of the pool, larger than this and aligned.
            unsafe { &*ptr::with_exposed_provenance::<AtomicU64>(object) }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let next = receiver.lock().expect("no panic").recv();
                        let Ok(object) = next else { break };
                        assert_eq!(word(object).swap(0, Relaxed), LENT);
                        put(
                            &pool,
                            NonNull::new(ptr::with_exposed_provenance_mut(object)).expect("one"),
                        );
                    }
                });
            }
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..40_000 {
                    let object = get(pool).as_ptr().expose_provenance();
                    assert_eq!(word(object).swap(LENT, Relaxed), 0, "lent twice, {round}");
                    sender.send(object).expect("a receiver");
                }
                assert!(pool.slabs().len() < 40, "{} slabs", pool.slabs().len());
            });
        });
    }

    /// No machine has enough memory for eight of these.
    #[test]
    #[cfg_attr(miri, ignore = "Miri gives up where there is no memory")]
    fn errno_is_left_alone_where_there_is_no_memory() {
        use crate::sys::{errno, set_errno};

        let pool = pool(MAX_SIZE, 8);
        set_errno(33);
        let object = pool.get();
        assert_eq!(errno(), 33);
        if object.is_some() {
            percid_skips::not_checked("a pool without memory", "the kernel promises any memory");
        }
    }

    /// An object is marked idle before another thread can get it: otherwise that thread's mark
    /// would be overwritten.
    #[test]
    #[cfg_attr(miri, ignore = "its pool stays, which is a leak")]
    fn an_object_is_marked_before_it_is_pushed() {
        let pool: &'static RawPool = Box::leak(Box::new(pool(32, 8)));
        let object = get(pool);
        let mark = header(object).addr();
        let seen = std::rc::Rc::new(std::cell::Cell::new(0));
        let note = std::rc::Rc::clone(&seen);
        let _watching = steps::watch(move |step| {
            if let Step::Insert(_) = step {
                // SAFETY: headers can be read at any time.
                note.set(unsafe { (*ptr::with_exposed_provenance::<Header>(mark)).mark });
            }
            None
        });
        // Until the push has activated a shard, for which it needs an ID.
        while seen.get() == 0 {
            // SAFETY: the object came from this pool, and no thread uses it.
            unsafe { pool.put(object) }.expect("it was lent");
            pool.idle.drain(drop);
            // SAFETY: the object came from this pool, and no thread uses it.
            unsafe { (*header(object)).mark = pool.lent() };
        }
        assert_eq!(seen.get(), pool.idle_mark());
    }

    #[test]
    fn a_drain_gives_back_slabs_that_nobody_uses() {
        let pool = pool(1000, 8);
        let objects: Vec<_> = (0..500).map(|_| get(&pool)).collect();
        let put = |object| {
            // SAFETY: the objects came from this pool and no thread uses them.
            unsafe { pool.put(object) }
        };
        objects[1..].iter().for_each(|&object| put(object).expect("it was lent"));
        let freed = pool.drain();
        assert!((300..500).contains(&freed), "{freed}: all but the slab of the one object");
        let misuse: HashSet<_> = objects[1..].iter().filter_map(|&it| put(it).err()).collect();
        assert!(misuse.contains(&PutError::Gone) && !misuse.contains(&PutError::WrongPool));
        put(objects[0]).expect("it was lent");
        assert_eq!(freed + pool.drain(), 500);
        // The same again, in the existing slabs.
        let slabs = |pool: &RawPool| {
            let mut slab = pool.slabs.load(Relaxed);
            // SAFETY: slabs stay forever.
            std::iter::from_fn(move || unsafe {
                slab.as_ref().inspect(|it| slab = it.older).map(drop)
            })
            .count()
        };
        let before = slabs(&pool);
        assert_eq!((0..500).map(|_| get(&pool)).collect::<HashSet<_>>().len(), 500);
        assert_eq!(slabs(&pool), before);
    }

    #[test]
    fn no_object_is_lent_to_two() {
        const LOANS: usize = if cfg!(miri) { 100 } else { 20_000 };
        const DRAINS: usize = if cfg!(miri) { 10 } else { 50 };
        for source in Source::ALL.into_iter().filter(|source| source.prepare().is_ok()) {
            let layout = Layout::new::<[AtomicU32; 16]>();
            let pool = RawPool::with_source(source, layout, 8).expect("an available source");
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..LOANS {
                            let objects = [get(&pool), get(&pool)];
                            for object in objects {
                                // SAFETY: zeroed memory of this layout, or the value that was
                                // stored below.
                                let users = unsafe { object.cast::<AtomicU32>().as_ref() };
                                assert_eq!(users.fetch_add(1, Relaxed), 0, "{source}");
                                users.store(0, Relaxed);
                                // SAFETY: it came from this pool and is not used any more.
                                unsafe { pool.put(object) }.expect("it was lent");
                            }
                        }
                    });
                }
                (0..DRAINS).for_each(|_| _ = pool.drain());
            });
        }
    }
}
