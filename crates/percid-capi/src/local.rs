//! One value per ID, used exclusively by any code.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use crate::barrier::guard;
use crate::callback::{Make, Visit};
use crate::errno;
use crate::registry::Registry;
use crate::source::source;

/// Values are at least so far apart that no two CPUs write to one cache line, or to two that the
/// processor fetches together.
const APART: usize = 128;

/// Far beyond any value, and small enough that no size overflows.
const MAX_SIZE: usize = 1 << 40;

/// A value for every CPU that asks for one, to be used by any function.
///
/// percid_local_with() lends the CPU's value out under a lock that takes no locked instruction; the
/// others reach all values, and stop the CPUs for a moment by a fence.
///
/// Threads: any number of threads may use it at once. No two callbacks ever have the same value at
/// the same time.
/// Which value: any. A thread gets the value of the CPU that it is on when it asks, and keeps it to
/// the end of the callback. Where another thread is using that value (a thread that was preempted
/// inside its callback, the caller itself further up its stack), it gets an extra one, and one is
/// made if need be. There are at most as many extra ones as callbacks were ever active at the same
/// time.
/// Signals: percid_local_with() is async-signal-safe as far as its callback is, once the values it
/// finds have been made; a new one is allocated by malloc().
/// Fork: the child has a copy of every value. Values that other threads of the parent were using
/// stay taken: percid_local_with() uses others, the rest would wait forever.
/// Memory: the size of a value, rounded up to a multiple of 128 bytes, for every ID that used it
/// and for every extra one, and at least a page for an extra one. Leak checkers do not look there:
/// drain before they count.
#[derive(Debug)]
pub struct Local {
    // First, since values are dropped by what comes second.
    values: percid::Local<Option<Value>>,
    kind: Kind,
}

/// What all values have in common.
#[derive(Debug)]
struct Kind {
    layout: Layout,
    make: Option<Make>,
    drop: Option<Visit>,
    context: *mut c_void,
}

/// A value that was made. Dropping it calls the caller's function.
#[derive(Debug)]
struct Value {
    memory: NonNull<u8>,
    /// Of the object that owns the value, and outlives it.
    kind: *const Kind,
}

// SAFETY: what C stores in a value is used by one thread at a time, as the documentation says;
// `kind` is only read.
unsafe impl Send for Value {}
// SAFETY: the context is only handed on, and the functions may be called by any thread.
unsafe impl Sync for Local {}

static LOCALS: Registry<Local> = Registry::new();

/// Stores a new object in `local`, whose values have `size` bytes that are aligned to `align` bytes
/// (a power of two up to 4096).
///
/// A value is made when an ID first asks for one: its memory is zeroed and given to `make`, which
/// returns 0, or an error below 0 that percid_local_with() then returns. `drop` is called before
/// its memory is freed. Either may be NULL, and both get `context`; any thread may call them.
///
/// Returns 0, -EINVAL for NULL or what is not allowed, or -ENOMEM; on error `local` becomes NULL.
///
/// # Safety
///
/// `local` is [memory](crate#safety) for a handle. `make` and `drop` are [callbacks](crate#safety)
/// with `context`, on any thread, until the object is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_create(
    local: *mut *mut Local,
    size: usize,
    align: usize,
    make: Option<unsafe extern "C" fn(value: *mut c_void, context: *mut c_void) -> c_int>,
    drop: Option<unsafe extern "C" fn(value: *mut c_void, context: *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    let new = || {
        let layout = layout(size, align).ok_or(-libc::EINVAL)?;
        let values = percid::Local::new(|| None);
        Ok(Local { values, kind: Kind { layout, make, drop, context } })
    };
    // SAFETY: the caller's pointer.
    unsafe { LOCALS.create(local, new) }
}

/// As percid_local_create(), for a source, whatever the process has chosen: for measurements and
/// tests.
///
/// Returns 0, -EINVAL for NULL, what is not allowed or a number that is no source's, -ENOMEM, or
/// why the source cannot be used, as percid_source_prepare() does; on error `local` becomes NULL.
///
/// # Safety
///
/// As [`percid_local_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_create_with_source(
    local: *mut *mut Local,
    source: c_int,
    size: usize,
    align: usize,
    make: Option<unsafe extern "C" fn(value: *mut c_void, context: *mut c_void) -> c_int>,
    drop: Option<unsafe extern "C" fn(value: *mut c_void, context: *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    let new = || {
        let layout = layout(size, align).ok_or(-libc::EINVAL)?;
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        let values = percid::Local::with_source(source, || None).map_err(errno::of_unavailable)?;
        Ok(Local { values, kind: Kind { layout, make, drop, context } })
    };
    // SAFETY: the caller's pointer.
    unsafe { LOCALS.create(local, new) }
}

/// Lends a value to `visit`, which must return.
///
/// Returns 0; -ENOMEM if another value is needed and there is no memory for it; the error of
/// `make`; -EINVAL for NULL; -EBADF if the object is destroyed. Waits for no thread. Costs some 20
/// instructions, a call, and the callback.
///
/// # Safety
///
/// `local` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_with(
    local: *mut Local,
    visit: Option<unsafe extern "C" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's handle.
    let (local, visit) = match (unsafe { Registry::object(local) }, visit) {
        (Ok(local), Some(visit)) => (local, visit),
        (Ok(_), None) => return -libc::EINVAL,
        (Err(error), _) => return error,
    };
    guard(-libc::EFAULT, || {
        let result = local.values.try_with(|slot| {
            let value = match slot {
                Some(value) => value,
                None => slot.insert(Value::new(&local.kind)?),
            };
            // SAFETY: the caller's function; the value is this thread's alone for so long.
            unsafe { visit(value.memory.as_ptr().cast(), argument) };
            Ok(())
        });
        match result {
            Some(Ok(())) => 0,
            Some(Err(error)) => error,
            None => -libc::ENOMEM,
        }
    })
}

/// Calls `visit` for every value that was made, of every ID and the extra ones. It may miss values
/// that are made meanwhile; and those of all IDs, if the process has entered a sandbox since the
/// first use that refuses membarrier().
///
/// Returns 0, -EINVAL for NULL, -EBADF if the object is destroyed. Waits for callbacks that are
/// using a value (so it must not be called by one of this object: -EDEADLK, and a line on standard
/// error that says where), and for other visits. Costs one fence of all CPUs, some 10 us, for every
/// 64 IDs.
///
/// # Safety
///
/// `local` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_for_each(
    local: *mut Local,
    visit: Option<unsafe extern "C" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's handle.
    let (local, visit) = match (unsafe { Registry::object(local) }, visit) {
        (Ok(local), Some(visit)) => (local, visit),
        (Ok(_), None) => return -libc::EINVAL,
        (Err(error), _) => return error,
    };
    guard(-libc::EDEADLK, || {
        local.values.for_each(|slot| {
            if let Some(value) = slot {
                // SAFETY: the caller's function; the value is this thread's alone for so long.
                unsafe { visit(value.memory.as_ptr().cast(), argument) };
            }
        });
        0
    })
}

/// Takes all values out: calls `visit` for each, unless that is NULL, and then the `drop` of the
/// object. New ones are made when they are needed. Returns how many there were, or what
/// percid_local_for_each() does.
///
/// # Safety
///
/// `local` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_drain(
    local: *mut Local,
    visit: Option<unsafe extern "C" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> i64 {
    // SAFETY: the caller's handle.
    let local = match unsafe { Registry::object(local) } {
        Ok(local) => local,
        Err(error) => return i64::from(error),
    };
    guard(i64::from(-libc::EDEADLK), || {
        let mut count = 0;
        local.values.drain(|slot| {
            let Some(value) = slot else { return };
            count += 1;
            if let Some(visit) = visit {
                // SAFETY: as above; the value is on no list any more.
                unsafe { visit(value.memory.as_ptr().cast(), argument) };
            }
        });
        count
    })
}

/// Destroys the object and drops its values. No other thread may use it meanwhile.
///
/// Returns 0, -EINVAL for NULL, -EBADF if it was destroyed before. Its handle stays recognisable.
///
/// # Safety
///
/// `local` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_local_destroy(local: *mut Local) -> c_int {
    // SAFETY: the caller's handle, which no other thread uses.
    unsafe { LOCALS.destroy(local) }
}

/// The layout of a value's memory, which shares no cache line with others.
fn layout(size: usize, align: usize) -> Option<Layout> {
    let allowed = size <= MAX_SIZE && align.is_power_of_two() && align <= 4096;
    let bytes = size.max(1).checked_next_multiple_of(APART).filter(|_| allowed)?;
    Layout::from_size_align(bytes, align.max(APART)).ok()
}

impl Value {
    fn new(kind: &Kind) -> Result<Value, c_int> {
        errno::preserved(|| {
            // SAFETY: the layout has a size above 0.
            let memory = NonNull::new(unsafe { alloc_zeroed(kind.layout) }).ok_or(-libc::ENOMEM)?;
            if let Some(make) = kind.make {
                // SAFETY: the caller's function, memory of the size it asked for.
                let result = unsafe { make(memory.as_ptr().cast(), kind.context) };
                if result != 0 {
                    // SAFETY: allocated above, and no other thread has it.
                    unsafe { dealloc(memory.as_ptr(), kind.layout) };
                    return Err(if result < 0 { result } else { -libc::ECANCELED });
                }
            }
            Ok(Value { memory, kind })
        })
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the object that owns the value outlives it.
        let kind = unsafe { &*self.kind };
        if let Some(drop) = kind.drop {
            // SAFETY: the caller's function; no thread uses the value any more.
            unsafe { drop(self.memory.as_ptr().cast(), kind.context) };
        }
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.memory.as_ptr(), kind.layout) };
    }
}
