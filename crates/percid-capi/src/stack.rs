//! Stacks of pointers.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::barrier::guard;
use crate::callback::{Visit, count, drained};
use crate::copies;
use crate::ends::{is_visiting, visiting};
use crate::errno;
use crate::registry::{Object, Registry, is_static};
use crate::source::source;

/// Maximum number of items in an ID's shard, from the library's documentation.
pub(crate) const MAX_CAPACITY: u32 = 2_097_151;

/// A list of pointers, last in, first out, with a separate shard for every CPU.
///
/// Made by percid_stack_create(), or of static storage: `static percid_stack free_list =
/// PERCID_STACK_INIT(64);`.
///
/// A CPU pops the items that it pushed, while they are in its cache, without a locked instruction.
/// A CPU whose shard is full moves a batch of up to 30 items to a list that all CPUs share; one
/// whose shard is empty fetches a batch from there.
///
/// Threads: any number of threads may use it at once. No item is lost or handed out twice.
/// Signals: pushing and popping is async-signal-safe; the rest is not.
/// Fork: the child has a copy of everything except the items that other threads of the parent were
/// moving.
/// Memory: 256 bytes; 8 * (capacity + 1) bytes for every ID that used it, rounded up to a power of
/// two; 256 bytes for every 30 items of the shared list. Leak checkers do not scan this memory:
/// drain a stack before they count.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Stack {
    /// Private to the library.
    word: u64,
    /// Maximum number of items of every ID.
    capacity: u64,
    /// Approximate maximum number of items in the shared list.
    shared: usize,
    /// Private to the library.
    rest: [u64; 29],
}

const _: () = {
    assert!(size_of::<Stack>() == size_of::<percid::Stack<usize>>());
    assert!(align_of::<Stack>() == align_of::<percid::Stack<usize>>());
};

static STACKS: Registry<Stack> = Registry::new();

impl Object for Stack {
    type Inner = percid::Stack<usize>;
    const TYPE: u64 = 33;

    unsafe fn of_static<'a>(address: *const Stack) -> Result<&'a percid::Stack<usize>, c_int> {
        // SAFETY: the caller guarantees an object; its capacity never changes.
        let capacity = unsafe { (*address).capacity };
        if !(1..=u64::from(MAX_CAPACITY)).contains(&capacity) {
            return Err(-libc::EINVAL);
        }
        // SAFETY: size, alignment and the members initialised by the macro are those of the
        // library's type. All its other words are zero at first, and members visible to other
        // threads change only atomically.
        unsafe { copies::own(address.cast()) }
    }
}

/// Stores a new stack in `stack`. It keeps up to `capacity` items for every ID (1 to 2 097 151),
/// and about `shared` in the shared list: PERCID_UNBOUNDED for any number.
///
/// Returns 0, -EINVAL for NULL or another capacity, or -ENOMEM; on error `stack` becomes NULL.
///
/// # Safety
///
/// `stack` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_stack_create(
    stack: *mut *mut Stack,
    capacity: u32,
    shared: usize,
) -> c_int {
    let make = || match capacity {
        1..=MAX_CAPACITY => Ok(percid::Stack::bounded(capacity, shared)),
        _ => Err(-libc::EINVAL),
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { STACKS.create(stack, make) }
}

/// Stores a new stack like percid_stack_create(), with a source that is independent of the
/// process's: for measurements and tests. IDs share any number of items.
///
/// Returns 0, -EINVAL for NULL, another capacity or a number that is not a source's, -ENOMEM, or
/// the reason why the source cannot be used, as percid_source_prepare() does; on error `stack`
/// becomes NULL.
///
/// # Safety
///
/// `stack` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_stack_create_with_source(
    stack: *mut *mut Stack,
    source: c_int,
    capacity: u32,
) -> c_int {
    let make = || {
        let source = self::source(source).filter(|_| (1..=MAX_CAPACITY).contains(&capacity));
        let source = source.ok_or(-libc::EINVAL)?;
        percid::Stack::with_source(source, capacity).map_err(errno::of_source_error)
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { STACKS.create(stack, make) }
}

/// Returns the maximum number of items of every ID; 0 if there is no such stack. Async-signal-safe;
/// costs a call.
///
/// # Safety
///
/// `stack` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_stack_capacity(stack: *const Stack) -> u32 {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(stack) }.map_or(0, |stack| stack.capacity())
}

/// Pushes an item, which must not be NULL.
///
/// Returns 0; -ENOSPC if there is no room: this CPU's shard is full, and the shared list as well,
/// or there is no memory for it; -EINVAL for NULL; -EBADF if the stack is destroyed.
/// Async-signal-safe. Costs about 20 instructions and a call.
///
/// # Safety
///
/// `stack` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_stack_push(stack: *mut Stack, item: *mut c_void) -> c_int {
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(stack) } {
        Ok(_) if item.is_null() => -libc::EINVAL,
        Ok(stack) => guard(-libc::EFAULT, || match stack.push(item.expose_provenance()) {
            Ok(()) => 0,
            Err(_) => -libc::ENOSPC,
        }),
        Err(error) => error,
    }
}

/// Pops the item that this CPU pushed last, or one of the shared list.
///
/// Returns NULL if there is none, or no such stack. Items in the shards of other CPUs are not
/// found. Async-signal-safe. Costs about 20 instructions and a call.
///
/// # Safety
///
/// `stack` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_stack_pop(stack: *mut Stack) -> *mut c_void {
    // SAFETY: the caller guarantees a handle.
    let popped = match unsafe { Registry::object(stack) } {
        Ok(stack) => guard(None, || stack.pop()),
        Err(_) => None,
    };
    popped.map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// Passes all items to `visit`, those of every ID and those of the shared list, and returns their
/// number. It may miss items that are pushed, or moved by another thread, during the call; and the
/// shards of all CPUs, if the process has entered a sandbox since the first push that refuses
/// membarrier().
///
/// Returns -EINVAL for NULL, -EBADF if the stack is destroyed, -EDEADLK if `visit` calls it, which
/// may push and pop: the drain passes such items too, or misses them. If `visit` does not return,
/// the items that were not passed to it stay. Waits for a drain by another thread. Costs one fence
/// of all CPUs, about 10 us, for every 64 IDs.
///
/// # Safety
///
/// `stack` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_stack_drain(
    stack: *mut Stack,
    visit: Option<unsafe extern "C-unwind" fn(item: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> i64 {
    // SAFETY: the caller guarantees a handle.
    match (unsafe { Registry::object(stack) }, visit) {
        (Ok(stack), Some(visit)) => drain(stack, visit, argument),
        (Ok(_), None) => i64::from(-libc::EINVAL),
        (Err(error), _) => i64::from(error),
    }
}

/// Destroys a stack, and passes the remaining items to `visit`, unless that is NULL. No other
/// thread may use it during the call. If `visit` does not return, the stack stays, with the items
/// that were not passed to it. Items that `visit` pushes are passed too.
///
/// Returns 0; -EINVAL for NULL, and for a stack of static storage, which is unchanged; -EDEADLK if
/// the `visit` of a drain calls it; -EBUSY if `visit` has pushed more in each of 100 drains, and
/// the stack stays with those items; -EBADF if it was destroyed before. Its handle is still
/// detected: every function returns -EBADF, or NULL.
///
/// # Safety
///
/// `stack` is [a handle](crate#safety), which no other thread uses. `visit` is [a
/// callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_stack_destroy(
    stack: *mut Stack,
    visit: Option<unsafe extern "C-unwind" fn(item: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    if is_static(stack) {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a handle.
    if let Ok(stack) = unsafe { Registry::object(stack) } {
        if is_visiting(stack) {
            return -libc::EDEADLK;
        }
        let left = visit.map_or(0, |visit| drained(|| drain(stack, visit, argument)));
        if left != 0 {
            return left;
        }
    }
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { STACKS.destroy(stack) }
}

fn drain(stack: &percid::Stack<usize>, visit: Visit, argument: *mut c_void) -> i64 {
    // The lock of visitors does not detect a visit during which the process was forked.
    if is_visiting(stack) {
        return i64::from(-libc::EDEADLK);
    }
    let Some(draining) = guard(None, || stack.drain_iter()) else {
        return i64::from(-libc::EDEADLK);
    };
    visiting(stack, draining, |items| {
        let mut drained = 0;
        while let Some(item) = guard(None, || items.next()) {
            drained += 1;
            // SAFETY: the caller guarantees a function for these arguments.
            unsafe { visit(ptr::with_exposed_provenance_mut(item), argument) };
        }
        count(drained)
    })
}
