//! Pools of untyped objects.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use percid::pool::{PutError, RawPool};

use crate::barrier::guard;
use crate::callback::count;
use crate::copies;
use crate::errno;
use crate::list;
use crate::registry::{Object, Registry};
use crate::source::source;
use crate::stack::MAX_CAPACITY;
use crate::table_stats::Range;

/// Maximum alignment of objects: a page.
const MAX_ALIGN: usize = 4096;

/// Maximum size of an object: far beyond any pooled object, and small enough that no size
/// overflows.
const MAX_SIZE: usize = 1 << 40;

/// A pool of objects of one size, some of which every CPU keeps for itself.
///
/// Made by percid_pool_create(), or of static storage: `static percid_pool pages =
/// PERCID_POOL_INIT(4096, 4096, 64);`.
///
/// The next percid_pool_get() on this CPU returns the object that was put last, which is still in
/// the CPU's cache. Every object has a header of 16 bytes before it, which is checked: an object
/// that is put twice, into another pool, or after its pool was destroyed, is refused. (Two threads
/// that put one object at the very same time are not detected.)
///
/// Threads: any number of threads may use it at once, and put objects that others got. No object is
/// returned to two users.
/// Signals: getting and putting is async-signal-safe; the rest is not.
/// Fork: the child has copies of the objects, in its own pool, except of those that other threads
/// of the parent were moving.
/// Memory: slabs of 64 KiB, or the multiple of that which eight objects need, from the kernel,
/// whose pages cost memory when they are touched. They are freed when a drain finds all objects of
/// a slab idle, and with the pool; their address space stays.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Pool {
    /// Private to the library.
    word: u64,
    /// Maximum number of idle objects of every ID.
    capacity: u64,
    /// Approximate maximum number of idle objects that IDs share.
    shared: usize,
    /// Private to the library.
    idle: [u64; 29],
    /// The number that identifies the pool's objects.
    number: u64,
    /// The size of an object.
    size: usize,
    /// Its alignment.
    align: usize,
    /// Private to the library.
    rest: [u64; 5],
}

const _: () = {
    assert!(size_of::<Pool>() == size_of::<RawPool>());
    assert!(align_of::<Pool>() == align_of::<RawPool>());
};

static POOLS: Registry<Pool> = Registry::new();

impl Object for Pool {
    type Inner = RawPool;
    const TYPE: u64 = 34;

    unsafe fn of_static<'a>(address: *const Pool) -> Result<&'a RawPool, c_int> {
        // SAFETY: the caller guarantees an object; these of its members never change.
        let (size, align, capacity) =
            unsafe { ((*address).size, (*address).align, (*address).capacity) };
        layout(size, align, capacity).ok_or(-libc::EINVAL)?;
        // SAFETY: size, alignment and the members initialised by the macro are those of the
        // library's type. All its other words are zero at first, and members visible to other
        // threads change only atomically.
        unsafe { copies::own(address.cast()) }
    }
}

/// Stores a new pool in `pool`, of objects of `size` bytes that are aligned to `align` bytes (a
/// power of two up to 4096). It keeps up to `capacity` idle objects for every ID (1 to 2 097 151),
/// and any number that IDs share.
///
/// Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `pool` becomes NULL.
///
/// # Safety
///
/// `pool` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_create(
    pool: *mut *mut Pool,
    size: usize,
    align: usize,
    capacity: u32,
) -> c_int {
    let make = || {
        let layout = layout(size, align, capacity.into()).ok_or(-libc::EINVAL)?;
        Ok(RawPool::new(layout, capacity))
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { POOLS.create(pool, make) }
}

/// Stores a new pool like percid_pool_create(), with about `shared` idle objects that IDs share at
/// most: PERCID_UNBOUNDED for any number.
///
/// Objects beyond that are not reused until their memory has been returned to the kernel. This
/// happens at once if the object is the last one of a slab whose other objects are idle in this way
/// (percid_pool_put() then makes a system call, once for all objects of a slab), otherwise with
/// percid_pool_drain().
///
/// # Safety
///
/// `pool` is [memory](crate#safety) for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_create_bounded(
    pool: *mut *mut Pool,
    size: usize,
    align: usize,
    capacity: u32,
    shared: usize,
) -> c_int {
    let make = || {
        let layout = layout(size, align, capacity.into()).ok_or(-libc::EINVAL)?;
        Ok(RawPool::bounded(layout, capacity, shared))
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { POOLS.create(pool, make) }
}

/// Stores a new pool like percid_pool_create(), with a source that is independent of the process's:
/// for measurements and tests.
///
/// Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
/// the reason why the source cannot be used, as percid_source_prepare() does; on error `pool`
/// becomes NULL.
///
/// # Safety
///
/// `pool` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_create_with_source(
    pool: *mut *mut Pool,
    source: c_int,
    size: usize,
    align: usize,
    capacity: u32,
) -> c_int {
    let make = || {
        let layout = layout(size, align, capacity.into()).ok_or(-libc::EINVAL)?;
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        RawPool::with_source(source, layout, capacity).map_err(errno::of_source_error)
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { POOLS.create(pool, make) }
}

/// Returns the layout of an object, if a pool may have it and this capacity.
fn layout(size: usize, align: usize, capacity: u64) -> Option<Layout> {
    let capacities = 1..=u64::from(MAX_CAPACITY);
    let allowed = size <= MAX_SIZE && align <= MAX_ALIGN && capacities.contains(&capacity);
    Layout::from_size_align(size, align).ok().filter(|_| allowed)
}

/// Returns the size of the pool's objects in bytes, as it was created; 0 if there is no such pool.
/// Async-signal-safe; costs a call.
///
/// # Safety
///
/// `pool` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_size(pool: *const Pool) -> usize {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(pool) }.map_or(0, |pool| pool.layout().size())
}

/// Returns the alignment of the pool's objects in bytes, as it was created; 0 if there is no such
/// pool. Async-signal-safe; costs a call.
///
/// # Safety
///
/// `pool` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_align(pool: *const Pool) -> usize {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(pool) }.map_or(0, |pool| pool.layout().align())
}

/// Returns the number of the pool's slabs, and writes the addresses of the first `capacity` of them
/// to `slabs`, in no order. With `capacity` 0 nothing is written and `slabs` may be NULL; 0 is
/// returned if there is no such pool.
///
/// For mbind() or a NUMA balancer: slabs are whole pages, and belong to the pool until the process
/// ends. Any percid_pool_get() may add a slab. Allocates, so it is not async-signal-safe; costs a
/// few nanoseconds per slab.
///
/// # Safety
///
/// `pool` is [a handle](crate#safety). `slabs` is [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_slabs(
    pool: *const Pool,
    slabs: *mut Range,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees a handle.
    let Ok(pool) = (unsafe { Registry::object(pool) }) else { return 0 };
    let found = || errno::preserved(|| pool.slabs()).into_iter().map(Range::from_range);
    // SAFETY: the caller guarantees memory of this size, or NULL.
    guard(0, || unsafe { list::write(found(), slabs, capacity) })
}

/// Returns an object: zeroed if it is new, and with the content that it was put with if it is
/// reused.
///
/// Returns NULL if there is no memory, or no such pool. Async-signal-safe. Costs about 25
/// instructions and a call.
///
/// # Safety
///
/// `pool` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_get(pool: *mut Pool) -> *mut c_void {
    // SAFETY: the caller guarantees a handle.
    let object = match unsafe { Registry::object(pool) } {
        Ok(pool) => guard(None, || pool.get()),
        Err(_) => None,
    };
    object.map_or(ptr::null_mut(), |object| object.as_ptr().cast())
}

/// Takes back an object that percid_pool_get() of any pool has returned and no thread uses any
/// more.
///
/// Returns 0, or an error, and then nothing has happened: -EALREADY if it was put before, -EXDEV if
/// it belongs to another pool, -ESTALE if its memory is gone (its pool was destroyed, or it was put
/// before a drain or into a full bounded pool), -EBADF if `pool` is destroyed, -EINVAL for NULL. An
/// address that never was an object of a pool must not be put. Async-signal-safe. Costs about 25
/// instructions and a call.
///
/// # Safety
///
/// `pool` is [a handle](crate#safety). `object` is NULL or was lent by percid_pool_get() of any
/// pool, and no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_put(pool: *mut Pool, object: *mut c_void) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let pool = match unsafe { Registry::object(pool) } {
        Ok(pool) => pool,
        Err(error) => return error,
    };
    let Some(object) = NonNull::new(object.cast::<u8>()) else { return -libc::EINVAL };
    // SAFETY: the caller guarantees that the object came from a pool and that no thread uses it.
    guard(-libc::EFAULT, || match unsafe { pool.put(object) } {
        Ok(()) => 0,
        Err(PutError::DoublePut) => -libc::EALREADY,
        Err(PutError::WrongPool) => -libc::EXDEV,
        // `PutError` may grow; the only other variant means that the memory is gone.
        Err(_) => -libc::ESTALE,
    })
}

/// Returns the memory of slabs without objects in use to the kernel. Returns the number of idle
/// objects in them. -EINVAL for NULL, -EBADF if the pool is destroyed.
///
/// Waits for a drain by another thread. Costs a fence of all CPUs, about 10 us, for every 64 IDs,
/// and a small cost for every idle object.
///
/// # Safety
///
/// `pool` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_drain(pool: *mut Pool) -> i64 {
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(pool) } {
        Ok(pool) => guard(i64::from(-libc::EFAULT), || count(pool.drain())),
        Err(error) => i64::from(error),
    }
}

/// Destroys a pool. No other thread may use it during the call. The memory of its objects is freed,
/// also of those in use.
///
/// Returns 0; -EINVAL for NULL, and for a pool of static storage, which is unchanged; -EBADF if it
/// was destroyed before. Its handle and its objects are still detected: every function returns
/// -EBADF, -ESTALE, or NULL.
///
/// # Safety
///
/// `pool` is [a handle](crate#safety), which no other thread uses; nor does any thread use an
/// object that the pool has lent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_destroy(pool: *mut Pool) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { POOLS.destroy(pool) }
}
