//! One value per ID, which any code may use exclusively.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI64, Ordering::Release};

use percid::capi::{HeldByCaller, is_watched};

use crate::barrier::guard;
use crate::callback::{Make, Visit, count, drained};
use crate::copies;
use crate::ends::holding;
use crate::errno;
use crate::registry::{Object, Registry, is_static};
use crate::source::source;

/// Minimum distance of values: no two CPUs write to one cache line, or to two that the processor
/// fetches together.
const APART: usize = 128;

/// Maximum size of a value: far beyond any value, and small enough that no size overflows.
const MAX_SIZE: usize = 1 << 40;

/// A value for every CPU that requests one, which any function may use.
///
/// Made by percid_local_create(), or of static storage: `static percid_local hits =
/// PERCID_LOCAL_INIT(sizeof(struct hits), 8, NULL, NULL, NULL);`.
///
/// percid_local_with() passes the CPU's value to a function under a lock that takes no locked
/// instruction, and so do percid_local_acquire() and percid_local_release(). The other functions
/// access all values, and interrupt the CPUs for a moment by a fence.
///
/// Threads: any number of threads may use it at once. No two callbacks ever have the same value at
/// the same time.
/// Value: a thread gets the value of its current CPU, and keeps it to the end of the callback, even
/// if it moves. If another user has that value (a thread that was preempted inside its callback, or
/// the caller itself further up its stack), the thread gets an extra one, which is made if needed.
/// There are at most as many extra values as callbacks were ever active at the same time.
/// Signals: percid_local_with() is async-signal-safe if its callback is, and if the value exists
/// already; a new one is allocated by malloc().
/// Fork: the child has a copy of every value. Values that other threads of the parent were using
/// are lost to it: percid_local_with() uses others. The first call of the other functions waits
/// about a second for each of them, unless the child has one thread only, and skips them. Values
/// that the forking thread was using are available again when it releases them.
/// Memory: 320 bytes, and memory for every ID that used it and for every extra value. The latter is
/// the size of a value, rounded up to a multiple of 128 bytes, and 128 bytes (or its alignment, if
/// that is more); for an extra value it is at least a page. Leak checkers do not scan this memory:
/// drain before they count.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Local {
    /// Private to the library.
    word: u64,
    /// Private to the library.
    values: [u64; 31],
    /// The size of a value.
    size: usize,
    /// Its alignment.
    align: usize,
    /// Initialises a zeroed value, if zeros are not enough.
    make: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void) -> c_int>,
    /// Called before the memory of a value is freed.
    drop: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void)>,
    /// The argument of both functions.
    context: *mut c_void,
    /// Private to the library.
    rest: [u64; 3],
}

/// The library's representation of the object.
// cbindgen would confuse the two types named `Local`.
/// cbindgen:ignore
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Values {
    // First, because dropping values uses `kind`.
    values: percid::Local<Value>,
    kind: Kind,
}

/// Properties common to all values.
#[repr(C)]
#[derive(Debug)]
struct Kind {
    size: usize,
    align: usize,
    make: Option<Make>,
    drop: Option<Visit>,
    context: *mut c_void,
}

/// A value, if it was made. Dropping it calls the caller's function.
#[repr(C)]
#[derive(Debug)]
struct Value {
    /// Null if there is none. The address of its lock is stored before it.
    memory: *mut u8,
    /// The properties in the object that owns the value, and outlives it.
    kind: *const Kind,
}

/// The constants of the fast path in C programs, and of the static initialiser.
const _: () = {
    assert!(size_of::<Local>() == size_of::<Values>() && align_of::<Local>() == 64);
    assert!(align_of::<Values>() == 64 && offset_of!(Values, values) == 0);
    assert!(offset_of!(Values, kind) == offset_of!(Local, size));
    assert!(offset_of!(Kind, align) == offset_of!(Local, align) - offset_of!(Local, size));
    assert!(offset_of!(Kind, make) == offset_of!(Local, make) - offset_of!(Local, size));
    assert!(offset_of!(Kind, drop) == offset_of!(Local, drop) - offset_of!(Local, size));
    assert!(offset_of!(Kind, context) == offset_of!(Local, context) - offset_of!(Local, size));
    assert!(size_of::<Value>() == 16 && offset_of!(Value, memory) == 0);
};

// SAFETY: one thread at a time uses the data that C stores in a value, as the documentation
// requires; `kind` is only read.
unsafe impl Send for Value {}
// SAFETY: the context is only passed on, and the functions may be called by any thread.
unsafe impl Sync for Values {}

static LOCALS: Registry<Local> = Registry::new();

impl Object for Local {
    type Inner = Values;
    const TYPE: u64 = 35;

    unsafe fn of_static<'a>(address: *const Local) -> Result<&'a Values, c_int> {
        // SAFETY: the caller guarantees an object; these of its members never change.
        let (size, align) = unsafe { ((*address).size, (*address).align) };
        layout(size, align).ok_or(-libc::EINVAL)?;
        // SAFETY: size, alignment and the members initialised by the macro are those of the
        // library's type. All its other words are zero at first (no function of Rust makes its
        // values, which may be zero), and members visible to other threads change only atomically.
        unsafe { copies::own(address.cast()) }
    }
}

/// Stores a new object in `local`, whose values have `size` bytes that are aligned to `align` bytes
/// (a power of two up to 4096).
///
/// A value is made when an ID first requests one: its memory is zeroed and passed to `make`, which
/// returns 0, or an error below 0 that percid_local_with() then returns. `drop` is called before
/// its memory is freed. Either may be NULL, and both get `context`; any thread may call them.
///
/// Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `local` becomes NULL.
///
/// # Safety
///
/// `local` is [memory](crate#safety) for a handle. `make` and `drop` are [callbacks](crate#safety)
/// with `context`, on any thread, until the object is destroyed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_create(
    local: *mut *mut Local,
    size: usize,
    align: usize,
    make: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void) -> c_int>,
    drop: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    let new = || {
        layout(size, align).ok_or(-libc::EINVAL)?;
        let values: percid::Local<_> = percid::Local::new(Value::none);
        Ok(Values { values, kind: Kind { size, align, make, drop, context } })
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { LOCALS.create(local, new) }
}

/// Stores a new object like percid_local_create(), with a source that is independent of the
/// process's: for measurements and tests.
///
/// Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
/// the reason why the source cannot be used, as percid_source_prepare() does; on error `local`
/// becomes NULL.
///
/// # Safety
///
/// The contract of [`percid_local_create`] holds.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_create_with_source(
    local: *mut *mut Local,
    source: c_int,
    size: usize,
    align: usize,
    make: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void) -> c_int>,
    drop: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    let new = || {
        layout(size, align).ok_or(-libc::EINVAL)?;
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        let values: Result<percid::Local<_>, _> = percid::Local::with_source(source, Value::none);
        let values = values.map_err(errno::of_source_error)?;
        Ok(Values { values, kind: Kind { size, align, make, drop, context } })
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { LOCALS.create(local, new) }
}

/// Passes a value to `visit`, until that returns, throws, ends its thread or jumps: the value then
/// has the content that `visit` has left in it.
///
/// Returns 0; -ENOMEM if another value is needed and there is no memory for it; the error of
/// `make`; -EINVAL for NULL; -EBADF if the object is destroyed. Never waits for a thread. Costs
/// about 20 instructions, a call, and the callback.
///
/// # Safety
///
/// `local` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_local_with(
    local: *mut Local,
    visit: Option<unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let (local, visit) = match (unsafe { Registry::object(local) }, visit) {
        (Ok(local), Some(visit)) => (local, visit),
        (Ok(_), None) => return -libc::EINVAL,
        (Err(error), _) => return error,
    };
    let Some(held) = guard(None, || local.values.lock()) else { return -libc::ENOMEM };
    holding(held, |held| {
        let value = held.value();
        if let Err(error) = value.ensure(&local.kind) {
            return error;
        }
        // SAFETY: the caller guarantees a function for these arguments; only this thread uses the
        // value during the call.
        unsafe { visit(value.memory.cast(), argument) };
        0
    })
}

/// Takes a value and stores its address in `value`: only the caller may use it until
/// percid_local_release(). This is percid_local_with() without a callback.
///
/// A value that is never released is lost: other threads get extra ones, and visits wait. So it
/// must be released on every path, including exceptions and pthread_exit() (`__attribute__
/// ((cleanup))` with -fexceptions, or pthread_cleanup_push(), do that). Another thread may release
/// it.
///
/// Returns 0, or an error of percid_local_with(); then `value` becomes NULL. Never waits for a
/// thread.
///
/// # Safety
///
/// `local` is [a handle](crate#safety). `value` is [memory](crate#safety) for a pointer.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_local_acquire(
    local: *mut Local,
    value: *mut *mut c_void,
) -> c_int {
    if value.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a handle.
    let taken = unsafe { Registry::object(local) }.and_then(Values::acquire);
    // SAFETY: the caller guarantees a valid pointer, and it is not NULL.
    unsafe { value.write(taken.map_or(ptr::null_mut(), |taken| taken.as_ptr().cast())) };
    taken.err().unwrap_or(0)
}

/// Releases a value that percid_local_acquire() has stored. NULL is allowed.
///
/// Async-signal-safe. Costs 3 instructions and a call.
///
/// # Safety
///
/// `value` is NULL or what percid_local_acquire() has stored, and was not given back since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_release(value: *mut c_void) {
    if !value.is_null() {
        // SAFETY: the word before a value is the address of its lock, which the caller holds;
        // storing `READY` releases it.
        unsafe {
            let lock = lock_of(value.cast());
            percid::capi::announce_release(lock.addr());
            (*lock).store(READY, Release);
        }
    }
}

/// Calls `visit` for every existing value, of every ID and the extra ones. It may miss values that
/// are made during the call; and those of all IDs, if the process has entered a sandbox since the
/// first use that refuses membarrier().
///
/// Returns 0, -EINVAL for NULL, -EBADF if the object is destroyed. Waits for callbacks that are
/// using a value (so -EDEADLK if a callback of this object calls it), and for other visits. `visit`
/// may call percid_local_with(), which passes it another value; but if it keeps a value that it has
/// acquired, the visit ends with -EDEADLK. If it does not return, the remaining values are not
/// visited. Costs one fence of all CPUs, about 10 us, for every 64 IDs.
///
/// # Safety
///
/// `local` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_local_for_each(
    local: *mut Local,
    visit: Option<unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let (local, visit) = match (unsafe { Registry::object(local) }, visit) {
        (Ok(local), Some(visit)) => (local, visit),
        (Ok(_), None) => return -libc::EINVAL,
        (Err(error), _) => return error,
    };
    let Ok(visiting) = guard(Err(HeldByCaller), || local.values.visit()) else {
        return -libc::EDEADLK;
    };
    holding(visiting, |values| {
        loop {
            match guard(Ok(None), || values.next()) {
                Ok(Some(value)) if value.memory.is_null() => {}
                // SAFETY: the caller guarantees a function for these arguments; only this thread
                // uses the value during the call.
                Ok(Some(value)) => unsafe { visit(value.memory.cast(), argument) },
                Ok(None) => return 0,
                Err(HeldByCaller) => return -libc::EDEADLK,
            }
        }
    })
}

/// Removes all values: calls `visit` for each, unless that is NULL, and then the `drop` of the
/// object. New values are made when they are needed. Returns the number of values, or an error of
/// percid_local_for_each(): the remaining values stay if `visit` or `drop` has kept one. If `visit`
/// does not return, its value is dropped, and the others stay; if `drop` does not return, the
/// others stay too.
///
/// # Safety
///
/// `local` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_local_drain(
    local: *mut Local,
    visit: Option<unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> i64 {
    // SAFETY: the caller guarantees a handle.
    let local = match unsafe { Registry::object(local) } {
        Ok(local) => local,
        Err(error) => return i64::from(error),
    };
    local.drain(visit, argument)
}

/// Destroys the object and drops its values. No other thread may use it during the call. If `drop`
/// does not return, the object stays, with the values that were not dropped. Values that `drop`
/// makes by using the object itself are dropped too.
///
/// Returns 0; -EINVAL for NULL, and for an object of static storage, which is unchanged; -EDEADLK
/// if the caller has one of its values, also one that `drop` has kept, or is in a visit of it;
/// -EBUSY if `drop` has made another value in each of 100 drains, and the object stays with that
/// value; -EBADF if it was destroyed before. Its handle is still detected.
///
/// # Safety
///
/// `local` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_local_destroy(local: *mut Local) -> c_int {
    if is_static(local) {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a handle.
    if let Ok(local) = unsafe { Registry::object(local) } {
        // Drain before the object is destroyed: its function may end the thread. A call within a
        // drain fails with -EDEADLK.
        let left = drained(|| local.drain(None, ptr::null_mut()));
        if left != 0 {
            return left;
        }
    }
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { LOCALS.destroy(local) }
}

/// The state of a lock that nobody holds.
const READY: i64 = 1;

/// The bit of a lock's address that makes inline code call the library to release it: a race
/// detector must be notified.
const WATCHED: usize = 1;

/// Returns the lock of a value, whose address is stored before the value.
///
/// # Safety
///
/// The value is acquired.
unsafe fn lock_of(value: *mut u8) -> *const AtomicI64 {
    // SAFETY: the caller guarantees an acquired value, which has its lock's address before it.
    let lock = unsafe { value.cast::<*const AtomicI64>().sub(1).read() };
    lock.map_addr(|lock| lock & !WATCHED)
}

/// Returns the layout of a value's memory, which shares no cache line with others. The part before
/// the value is large enough to keep the value aligned.
fn layout(size: usize, align: usize) -> Option<Layout> {
    let allowed = size <= MAX_SIZE && align.is_power_of_two() && align <= 4096;
    let bytes = size.max(1).checked_next_multiple_of(APART).filter(|_| allowed)?;
    Layout::from_size_align(in_front(align) + bytes, in_front(align)).ok()
}

/// Returns the number of bytes before a value.
fn in_front(align: usize) -> usize {
    align.max(APART)
}

impl Values {
    /// Takes a value, and makes it if needed.
    fn acquire(&self) -> Result<NonNull<u8>, c_int> {
        let held = guard(None, || self.values.lock()).ok_or(-libc::ENOMEM)?;
        holding(Some(held), |held| {
            let value = held.as_mut().ok_or(-libc::EFAULT)?.value().ensure(&self.kind)?;
            // The caller owns it from here on.
            std::mem::forget(held.take());
            Ok(value)
        })
    }

    fn drain(&self, visit: Option<Visit>, argument: *mut c_void) -> i64 {
        let deadlock = i64::from(-libc::EDEADLK);
        let Ok(visiting) = guard(Err(HeldByCaller), || self.values.visit()) else {
            return deadlock;
        };
        // The removed value is dropped before its shard is released.
        holding((None::<Value>, visiting), |(taken, values)| {
            let mut drained = 0;
            loop {
                match guard(Ok(false), || Ok(values.next()?.is_some())) {
                    Ok(true) => {}
                    Ok(false) => return count(drained),
                    Err(HeldByCaller) => return deadlock,
                }
                *taken = values.take();
                let Some(memory) = taken.as_ref().map(|value| value.memory) else { continue };
                if !memory.is_null() {
                    drained += 1;
                    if let Some(visit) = visit {
                        // SAFETY: the caller guarantees a function for these arguments; the value
                        // is on no list any more.
                        unsafe { visit(memory.cast(), argument) };
                    }
                }
                // Remove the value first: its function is not called again if it does not return.
                drop(taken.take());
            }
        })
    }
}

impl Value {
    fn none() -> Value {
        Value { memory: ptr::null_mut(), kind: ptr::null() }
    }

    /// Makes the value, unless it exists. After that neither the value nor its lock moves.
    fn ensure(&mut self, kind: &Kind) -> Result<NonNull<u8>, c_int> {
        if let Some(memory) = NonNull::new(self.memory) {
            return Ok(memory);
        }
        let lock = percid::Local::lock_of(NonNull::from(&mut *self));
        let memory = errno::preserved(|| kind.make(lock))?;
        *self = Value { memory: memory.as_ptr(), kind };
        Ok(memory)
    }
}

impl Kind {
    fn make(&self, lock: *mut i64) -> Result<NonNull<u8>, c_int> {
        let memory = Memory::new(self).ok_or(-libc::ENOMEM)?;
        let lock = lock.map_addr(|lock| lock | if is_watched() { WATCHED } else { 0 });
        // SAFETY: there is room for an address before the value, which is aligned to 128 bytes.
        unsafe { memory.value.cast::<*mut i64>().sub(1).write(lock) };
        if let Some(make) = self.make {
            // SAFETY: the caller guarantees a function for these arguments; the memory has the
            // requested size.
            let result = unsafe { make(memory.value.as_ptr().cast(), self.context) };
            if result != 0 {
                return Err(if result < 0 { result } else { -libc::ECANCELED });
            }
        }
        Ok(std::mem::ManuallyDrop::new(memory).value)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let Some(value) = NonNull::new(self.memory) else { return };
        // SAFETY: the object that owns the value outlives it.
        let kind = unsafe { &*self.kind };
        // The memory is freed even if the function does not return.
        let _memory = Memory { value, kind };
        if let Some(drop) = kind.drop {
            // SAFETY: the caller guarantees a function for these arguments; no thread uses the
            // value any more.
            unsafe { drop(self.memory.cast(), kind.context) };
        }
    }
}

/// The memory of a value; freed when dropped.
struct Memory<'k> {
    value: NonNull<u8>,
    kind: &'k Kind,
}

impl Memory<'_> {
    fn new(kind: &Kind) -> Option<Memory<'_>> {
        let layout = layout(kind.size, kind.align)?;
        // SAFETY: the layout has a size above 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: the allocation has `in_front` bytes before the value.
        let value = unsafe { start.add(in_front(kind.align)) };
        Some(Memory { value, kind })
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if let Some(layout) = layout(self.kind.size, self.kind.align) {
            // SAFETY: the memory was allocated with this layout, and starts `in_front` bytes before
            // the value.
            unsafe { dealloc(self.value.as_ptr().sub(in_front(self.kind.align)), layout) };
        }
    }
}
